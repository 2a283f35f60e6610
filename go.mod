module qj

go 1.26

require (
	github.com/klauspost/compress v1.20.3 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
