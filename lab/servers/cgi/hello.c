/* The least that a compiled CGI program can cost. */
#include <stdio.h>

int main(void)
{
	puts("Content-Type: text/plain\r\nContent-Length: 13\r\n\r");
	fputs("Hello, World!", stdout);
	return 0;
}
