"""What counts as the same computation, so that a faster way to it does not invalidate results.

The definition is `engine.sequential`: the batches of `engine.workload`, the losses of
`engine.task`, PyTorch's gradients and the steps of its `Update`, in float32. The other ways to
train agree with it to rounding, as those of `engine.compiled` do.

Modules that are tested like this say `__numerics__ = NUMERICS`, as do those that only decide when
and where something is computed. Of their code, a run's fingerprint sees this value alone
(`clustered_fl.workflow.fingerprint`). Increase it, and everything is trained again, for a change
that computes something else or corrects an error which the equality tests missed.
"""

NUMERICS = 1
