execute_command
command=df -h '/a b'