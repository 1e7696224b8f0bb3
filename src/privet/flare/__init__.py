"""A study's coordinator and parties inside jobs of NVFlare, which carries their messages."""

from privet.flare.jobs import write_job

__all__ = ["write_job"]
