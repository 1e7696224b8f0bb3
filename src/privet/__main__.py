"""``python -m privet`` is the command ``privet``."""

from privet.cli import main

main()
