"""The pages people use. Each module holds the views of one page and its `urlpatterns`; found by walking, not registered.

A page knows nothing that the API does not say: it asks `/bench/…` through `panels.pages.door`, in this process and as the person who is signed in.
"""
