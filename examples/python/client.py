"""A small client of the events API. The base URL ends with /api/public/v1."""

import email.utils
import http.client
import json
import random
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

TEMPORARY = {408, 429, 500, 502, 503, 504}  # the same request may succeed later; other errors are final


class Client:
    def __init__(self, base_url, key, sleep=time.sleep):
        self.base_url = base_url
        self.key = key
        self.sleep = sleep  # tests replace it

    def events(self, limit=100):
        """Returns all events, newest first. Reads them in pages of at most limit."""
        events, query = [], {"limit": limit}
        while True:
            page = self._send("GET", "/events?" + urllib.parse.urlencode(query))
            events += page["data"]
            if not page["has_more"]:
                return events
            query["cursor"] = page["next_cursor"]

    def create(self, event):
        """Creates an event and returns it."""
        return self._send("POST", "/events/create", event)

    def _send(self, method, path, body=None):
        """Sends a request. If the connection breaks or the status is temporary, waits and tries again, up
        to four times. All attempts have the same Idempotency-Key, so a create that arrives twice creates
        one event."""
        request = urllib.request.Request(self.base_url + path, method=method)
        request.add_header("x-service-api-key", self.key)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
            request.add_header("Idempotency-Key", str(uuid.uuid4()))
        for backoff in (1, 2, 4, 8, None):
            try:
                with urllib.request.urlopen(request, timeout=10) as response:
                    return json.load(response)
            except urllib.error.HTTPError as error:
                if error.code not in TEMPORARY or backoff is None:
                    raise
                error.close()
                wait = _pause(error.headers["Retry-After"], backoff)
            except (OSError, http.client.HTTPException):  # no response, or half of one
                if backoff is None:
                    raise
                wait = _pause(None, backoff)
            self.sleep(wait)


def _pause(retry_after, backoff):
    """Returns the seconds to wait before the next attempt: as long as Retry-After says, which is a number
    of seconds or a date, otherwise 10 % more or less than backoff, so that clients don't all return at
    once."""
    if retry_after and retry_after.isdecimal():
        return int(retry_after)
    date = email.utils.parsedate_tz(retry_after)
    if date:
        return max(0, email.utils.mktime_tz(date) - time.time())
    return backoff * random.uniform(0.9, 1.1)
