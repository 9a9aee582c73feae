"""Functions that Python workers must import."""


def shout(text):
    return text.upper()
