"""The predicates on the same ground, filled by the modules beside this one."""

from clustered_fl.claims.predicates import Predicates

claim = Predicates()
