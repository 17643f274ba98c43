"""Django's own stack alone, for servers that speak WSGI: pages and `/bench`, not the gateway."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "benchwarmers.settings")
application = get_wsgi_application()
