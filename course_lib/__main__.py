"""``python -m course_lib``: see `cli.py`."""

from course_lib.cli import main

raise SystemExit(main())
