"""`python -m clustered_fl`."""

import os
import sys

# Before torch is imported anywhere: with its default of one thread per core, two jobs side by side
# are about twenty times slower, because every small operation waits for all threads.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Numba's thread pool, which UMAP starts, sets OpenMP's number of threads, and so torch's. Without
# this, training after UMAP in the same process was ten times slower beside another job.
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

from clustered_fl.allocator import keep_freed_memory
from clustered_fl.cli import main

keep_freed_memory()
sys.exit(main())
