"""What a request is refused with."""


class RequestError(Exception):
    """An error reply: the HTTP status, the message, and the seconds after which a retry may succeed."""

    def __init__(self, status: int, message: str, wait: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.wait = status, message, wait
