# Bandwidth in B/s from a date on (s): halved for ten minutes of every hour.
0 125000000
1200 62500000
1800 125000000
PERIODICITY 3600
