module curlew.invalid/grid/programs

go 1.24.0
