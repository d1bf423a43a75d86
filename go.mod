module example.com/events

go 1.26.0
