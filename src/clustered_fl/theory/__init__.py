"""Studies without training: the toy problems, the theorems and the simulations of the CFL papers.

Every study is a function `(seed, **settings) -> {table name: tidy table}`.
"""
