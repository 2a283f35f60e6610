module qj

go 1.26
