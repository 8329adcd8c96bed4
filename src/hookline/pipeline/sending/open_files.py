"""Manages the limit on files that this process may have open."""

import resource


def allowed() -> int | None:
    """How many files may be open at once; None: any number."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _number(soft)


def allowed_after_raising() -> int | None:
    """How many may be open after the limit is raised as far as possible without more rights."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _number(hard)


def raise_limit() -> None:
    """Raise the limit as far as possible. Only for our own processes: a library must not change it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError):  # some systems have a further limit of their own: it stays as it is
            return


def _number(limit: int) -> int | None:
    return None if limit == resource.RLIM_INFINITY else limit
