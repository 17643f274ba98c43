"""One file per public catalog. Empty until the bench reads catalogs by itself."""
