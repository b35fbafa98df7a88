module wrote.example/go

go 1.21
