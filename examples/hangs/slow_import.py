"""A module that takes long to import, as large libraries on a network file system do."""

import time

time.sleep(12)
