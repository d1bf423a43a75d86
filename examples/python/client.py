"""A small client of the events API. The base URL ends in /api/public/v1."""

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
import uuid

TRIES = 3


class Client:
    def __init__(self, base_url, key):
        self.base_url = base_url
        self.key = key

    def events(self, limit=100):
        """All events, newest first, read in pages of at most limit."""
        events, query = [], {"limit": limit}
        while True:
            page = self._send("GET", "/events?" + urllib.parse.urlencode(query))
            events += page["data"]
            if not page["has_more"]:
                return events
            query["cursor"] = page["next_cursor"]

    def create(self, event):
        """Tries again if there is no response, half of one, or a server error. All attempts
        have the same Idempotency-Key, so they create one event."""
        idempotency_key = str(uuid.uuid4())
        for attempt in range(1, TRIES + 1):
            try:
                return self._send("POST", "/events/create", event, {"Idempotency-Key": idempotency_key})
            except urllib.error.HTTPError as error:
                error.close()
                if error.code < 500 or attempt == TRIES:
                    raise
            except (OSError, http.client.IncompleteRead):  # no response, or half of one
                if attempt == TRIES:
                    raise

    def _send(self, method, path, body=None, headers={}):
        request = urllib.request.Request(
            self.base_url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"x-service-api-key": self.key, "Content-Type": "application/json", **headers},
        )
        with urllib.request.urlopen(request, timeout=10) as response:
            return json.load(response)
