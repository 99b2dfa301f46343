#!/usr/bin/env ruby
require "cgi"

CGI.new.out("type" => "text/plain") { "Hello, World!" }
