"""`python -m agglearn`."""

import sys

from agglearn.cli import main

sys.exit(main())
