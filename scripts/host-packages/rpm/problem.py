"""What both parts of the work share: how a failure is told, and where things are."""
import os
import re
import urllib.parse

ENV = os.environ
STATE = ENV['CURLEW_STATE']
OUT = ENV['CURLEW_OUT']


class Problem(Exception):
    """A failure with its lines for the file `problem`: a kind and its fields."""

    def __init__(self, *lines):
        super().__init__(lines)
        self.lines = lines


def one_line(text):
    return re.sub(r'\s+', ' ', str(text)).strip()


def address(repo):
    """The URL of a repository without user info and query, or its id."""
    if not repo.baseurl:
        return repo.id
    parts = urllib.parse.urlsplit(repo.baseurl[0])
    return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition('@')[2], parts.path, '', ''))
