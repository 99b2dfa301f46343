#!/bin/sh
printf 'Content-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!'
