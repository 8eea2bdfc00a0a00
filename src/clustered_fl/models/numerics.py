"""What counts as the same computation, so that a faster implementation invalidates no results.

The definition is `engine.sequential`: the batches of `engine.workload`, the losses of
`engine.task`, PyTorch's gradients and the steps of its `Update`, in float32. Tests show that the
other paths, such as `engine.compiled`, agree with it to rounding.

Modules tested in this way declare `__numerics__ = NUMERICS`, as do modules that only decide when
and where something is computed. A run's fingerprint contains this value in place of their code
(`clustered_fl.workflow.fingerprint`). Increase it, which retrains everything, when a change
computes something else or corrects an error that the equality tests missed.
"""

NUMERICS = 1
