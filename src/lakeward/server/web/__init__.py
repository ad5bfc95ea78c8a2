"""The web page: what people look at. Each page asks the handles of the open workspace, and its HTML is made here.

site        puts pages and their files into the application
pages/      one file for each page: its routes, and its place in the navigation
page        how a page is answered: whole, or the part that changes
templates/  their HTML; `parts.html` has what they share
static/     our style and scripts; `vendor/` is put there by `make setup`
"""
