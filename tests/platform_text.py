"""The first lines of a platform file, for tests that write one."""

DOCTYPE = '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">'
HEADER = f'{DOCTYPE}\n<platform version="4.1">\n'
