"""Studies without training, by paper: functions `(seed, **settings) -> {name: tidy table}`."""
