"""Every setting of a deployment, read once from the environment. `docs/SETTINGS.md` describes each; a test holds the two together.

No other module reads the environment.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import secrets
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies_environment

import platformdirs
from django.core.exceptions import ImproperlyConfigured

from benchwarmers.unfold import UNFOLD  # noqa: F401  # a setting, which django-unfold reads

BASE_DIR = Path(__file__).resolve().parent.parent
VERSION = "0.1.0"


# ------------------------------------------------------------------ typed readers: a wrong value stops the start, loudly


def env_str(name: str, default: str = "") -> str:
    return os.environ.get(name, "").strip() or default


def env_int(name: str, default: int, least: int = 0) -> int:
    raw = env_str(name)
    if not raw:
        return default
    try:
        value = int(raw)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be a whole number, not {raw!r}.") from None
    if value < least:
        raise ImproperlyConfigured(f"{name} must be at least {least}, not {value}.")
    return value


def env_list(name: str) -> list[str]:
    return [part.strip() for part in env_str(name).split(",") if part.strip()]


def env_bool(name: str, default: bool = False) -> bool:
    raw = env_str(name).lower()
    if not raw:
        return default
    if raw not in ("1", "0", "true", "false", "yes", "no", "on", "off"):
        raise ImproperlyConfigured(f"{name} must be 1 or 0, not {raw!r}.")
    return raw in ("1", "true", "yes", "on")


def child_environment(**changes: str) -> dict[str, str]:
    """The environment for the processes that `serve` starts in the checkout: this one's, with changes; an empty value takes a name out."""
    if (given := env_str("BENCHWARMERS_SECRET_KEYS")).startswith("file:"):
        changes = {"BENCHWARMERS_SECRET_KEYS": f"file:{Path(given[5:]).expanduser().resolve()}", **changes}
    kept = {name: value for name, value in os.environ.items() if name not in changes}
    return kept | {name: value for name, value in changes.items() if value}


# ------------------------------------------------------------------ where things are kept


def data_folder() -> Path:
    """The data folder: `BENCHWARMERS_HOME`, else what the checkout's `.benchwarmers-home` names, else the user's data folder."""
    if named := env_str("BENCHWARMERS_HOME"):
        return Path(named).expanduser().resolve()
    pointer = BASE_DIR / ".benchwarmers-home"
    if pointer.exists() and (line := pointer.read_text(encoding="utf-8").strip()):
        return Path(line).expanduser().resolve()
    return Path(platformdirs.user_data_dir("benchwarmers", appauthor=False))


HOME = data_folder()
try:
    HOME.mkdir(parents=True, exist_ok=True, mode=0o700)
except OSError as error:
    raise ImproperlyConfigured(f"The data folder {HOME} cannot be made: {error.strerror}. Set BENCHWARMERS_HOME.") from None
OUTBOX_FOLDER = HOME / "outbox"
ERRANDS_LOCK = "errands.lock"  # in the data folder
SECRETS_FILE = Path(platformdirs.user_config_dir("benchwarmers", appauthor=False)) / "secrets.keys"


def secret_keys() -> list[str]:
    """The secrets, first one first: from `BENCHWARMERS_SECRET_KEYS`, else from the file in the user's configuration folder, made on first use.

    The file lies outside the data folder so that no copy of the data yields a provider's key.
    """
    given = env_str("BENCHWARMERS_SECRET_KEYS")
    if given.startswith("file:"):
        path = Path(given[5:]).expanduser()
        try:
            found = [k.strip() for k in path.read_text(encoding="utf-8").replace(",", "\n").splitlines() if k.strip()]
        except OSError as error:
            raise ImproperlyConfigured(f"BENCHWARMERS_SECRET_KEYS names {path}, which cannot be read: {error.strerror}.") from None
    elif given:
        found = [k.strip() for k in given.split(",") if k.strip()]
    else:
        try:
            SECRETS_FILE.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(SECRETS_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        except OSError as error:
            raise ImproperlyConfigured(f"{SECRETS_FILE} cannot be written ({error.strerror}). Set BENCHWARMERS_SECRET_KEYS, or file:PATH.") from None
        else:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(secrets.token_urlsafe(48) + "\n")
        found = [k.strip() for k in SECRETS_FILE.read_text(encoding="utf-8").splitlines() if k.strip()]
    if not found:
        raise ImproperlyConfigured("BENCHWARMERS_SECRET_KEYS holds no key.")
    if short := [k for k in found if len(k) < 16]:
        raise ImproperlyConfigured(f"BENCHWARMERS_SECRET_KEYS: {len(short)} of its keys are shorter than 16 characters.")
    return found


SECRET_KEYS = secret_keys()


def derived(secret: str, purpose: str) -> str:
    """One secret serves several purposes; each gets a key of its own."""
    return hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).hexdigest()


SECRET_KEY = derived(SECRET_KEYS[0], "django")
SECRET_KEY_FALLBACKS = [derived(k, "django") for k in SECRET_KEYS[1:]]

# Keys of endpoints that the environment holds, by variable. Only these names can be pointed at, so that no admin reads another variable.
ENVIRONMENT_KEY_PREFIX = "BENCHWARMERS_KEY_"
ENVIRONMENT_KEYS = {name: value.strip() for name, value in os.environ.items() if name.startswith(ENVIRONMENT_KEY_PREFIX) and value.strip()}

# ------------------------------------------------------------------ where the server listens, and who may call

# "gateway": the gateway and the probes alone, no pages, no queue. `serve --only gateway` sets it.
ONLY = env_str("BENCH_ONLY")
if ONLY not in ("", "gateway"):
    raise ImproperlyConfigured(f"BENCH_ONLY must be gateway or empty, not {ONLY!r}.")
HOST = env_str("BENCH_HOST", "127.0.0.1")
GATEWAY_PORT = env_int("BENCH_PORT", 8123)
PORT = GATEWAY_PORT if ONLY == "gateway" else env_int("BENCH_PORT", 8122)
WORKERS = env_int("BENCH_WORKERS", 2, least=1)
ADMIN_TOKEN = env_str("BENCHWARMERS_ADMIN_TOKEN")
PUBLIC_URL = env_str("BENCH_PUBLIC_URL").rstrip("/")


def is_loopback(host: str) -> bool:
    """Tells whether a server that listens on this address can be reached from this machine only."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


ON_LOOPBACK = is_loopback(HOST)
LOOPBACK_NAMES = ["localhost", "127.0.0.1", "[::1]"]

public = urlsplit(PUBLIC_URL)
if PUBLIC_URL and (public.scheme not in ("http", "https") or not public.hostname):
    raise ImproperlyConfigured("BENCH_PUBLIC_URL must be an http or https address, like https://bench.example.org.")
FORCE_SCRIPT_NAME = public.path or None
PUBLIC_ORIGIN = f"{public.scheme}://{public.netloc}" if PUBLIC_URL else ""

ALLOWED_HOSTS = [*LOOPBACK_NAMES, *env_list("BENCH_ALLOWED_HOSTS"), *([public.hostname] if public.hostname else [])]
if not ON_LOOPBACK and HOST not in ("0.0.0.0", "::", "[::]"):  # noqa: S104
    ALLOWED_HOSTS.append(HOST)
ALLOWED_ORIGINS = [origin.rstrip("/") for origin in env_list("BENCH_ALLOWED_ORIGINS")]
try:
    TRUSTED_PROXIES = [ipaddress.ip_network(item, strict=False) for item in env_list("BENCH_TRUSTED_PROXIES")]
except ValueError as error:
    raise ImproperlyConfigured(f"BENCH_TRUSTED_PROXIES: {error}.") from None
CSRF_TRUSTED_ORIGINS = [PUBLIC_ORIGIN] if PUBLIC_ORIGIN else []

# Proxies of the environment (HTTPS_PROXY …): used for public hosts only.
PROXIES: dict[str, str] = getproxies_environment()

# Where sign-ins are instead of at the providers' own addresses, by name: for tests, and for a gateway of one's own in between.
SIGNIN_URLS = dict(item.partition("=")[::2] for item in env_list("BENCH_SIGNIN_URLS"))
if wrong := [name for name, url in SIGNIN_URLS.items() if urlsplit(url).scheme not in ("http", "https")]:
    raise ImproperlyConfigured(f"BENCH_SIGNIN_URLS must hold provider=address, like openrouter=https://openrouter.ai; {wrong[0]!r} has no address.")

# Where public catalogs are read instead of at their own addresses, by name: a mirror of one's own, which may be private. Without an address one is never read.
CATALOG_URLS = dict(item.partition("=")[::2] for item in env_list("BENCH_CATALOG_URLS"))
if wrong := [name for name, url in CATALOG_URLS.items() if url and urlsplit(url).scheme not in ("http", "https")]:
    raise ImproperlyConfigured(f"BENCH_CATALOG_URLS must hold catalog=address, like models_dev=https://mirror.example.org/api.json, not {wrong[0]!r}.")

MAX_BODY_BYTES = env_int("BENCH_MAX_BODY_MB", 32, least=1) * 1024 * 1024
MAX_CALLS = env_int("BENCH_MAX_CALLS", 2000, least=1)
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY_BYTES

KEEP_TEXT_DAYS = env_int("BENCH_KEEP_TEXT_DAYS", 90)
DIRECT_WAIT_MAX_S = 30.0
DIRECT_TIMEOUT_S = 600.0
DIRECT_FIRST_TOKEN_S = 600.0
DIRECT_IDLE_S = 120.0
# How long silence may last in a reply before something legal is said, and how long headers wait for content. Tests shorten both.
KEEPALIVE_S = float(env_str("BENCH_KEEPALIVE_S", "15"))
HEADERS_WITHIN_S = float(env_str("BENCH_HEADERS_WITHIN_S", "10"))
# How long calls that need no reservation go on without the database.
SNAPSHOT_GRACE_S = 600.0
# Longest timeout_s plus wait_max_s a collection may set, with a margin: a stop waits this long for open streams.
GRACEFUL_TIMEOUT_S = env_int("BENCH_GRACEFUL_TIMEOUT_S", 360, least=1)

# ------------------------------------------------------------------ Django

DEBUG = False
ROOT_URLCONF = "benchwarmers.urls"
ASGI_APPLICATION = "benchwarmers.asgi.application"
WSGI_APPLICATION = "benchwarmers.wsgi.application"

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "unfold.contrib.inlines",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "rest_framework",
    "drf_spectacular",
    "django_q",
    "access",
    "catalog",
    "health",
    "panels",
    "suite",
    "benchwarmers",
]

MIDDLEWARE = [
    "benchwarmers.middleware.SecurityHeadersMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

AUTH_USER_MODEL = "access.User"
AUTHENTICATION_BACKENDS = ["access.backends.RoleBackend"]
LOGIN_URL = "/admin/login/"
AUTH_PASSWORD_VALIDATORS = [{"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}}]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PUBLIC_URL.startswith("https://")
SESSION_COOKIE_NAME = "benchwarmers_session"
CSRF_COOKIE_NAME = "benchwarmers_csrf"
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_HSTS_SECONDS = 31_536_000 if PUBLIC_URL.startswith("https://") else 0


def database() -> dict[str, object]:
    """The database of `DATABASE_URL` (PostgreSQL), else SQLite in the data folder."""
    url = env_str("DATABASE_URL")
    if not url:
        return {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": HOME / "benchwarmers.sqlite3",
            "OPTIONS": {
                "timeout": 20,
                "transaction_mode": "IMMEDIATE",  # a deferred transaction that turns writer fails at once instead of waiting
                "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA foreign_keys=ON; PRAGMA cache_size=-16000;",
            },
            "TEST": {"NAME": HOME / "test.sqlite3"},
        }
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        raise ImproperlyConfigured("DATABASE_URL must begin with postgres:// (SQLite is what is used without it).")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 0,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "connect_timeout": 5,
            # Persistent connections multiply with threads until PostgreSQL refuses new ones; a small pool a process does not.
            **({} if IS_COMMAND else {"pool": {"min_size": 0, "max_size": 4, "timeout": 10}}),
        },
    }


# Whether a browser could open here.
HAS_DISPLAY = sys.platform in ("darwin", "win32") or bool(env_str("DISPLAY") or env_str("WAYLAND_DISPLAY"))
# A command is one short connection, or forks, which no pool survives.
IS_COMMAND = Path(sys.argv[0]).name == "manage.py"
DATABASES = {"default": database()}
REDIS_URL = env_str("REDIS_URL")

STATIC_URL = "static/"
STATIC_ROOT = BASE_DIR / "static-root"  # filled by collectstatic in an image; empty in a checkout, where files are found in place
with suppress(OSError):
    STATIC_ROOT.mkdir(exist_ok=True)
STATICFILES_DIRS = [BASE_DIR / "templates" / "static"]
CLIENT_FOLDER = BASE_DIR / "client"  # offered for download as a wheel
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

LANGUAGE_CODE = "en-us"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"
BENCH_TIME_ZONE = env_str("BENCH_TIME_ZONE", "UTC")


def queue_name(database: Mapping[str, object], redis_url: str) -> str:
    """Names the queue in its broker, in a Redis after its database: deployments that share one would take each other's rings."""
    if not redis_url:
        return "benchwarmers"
    where = "{HOST}:{PORT}/{NAME}".format_map({"HOST": "", "PORT": "", **database})
    return f"benchwarmers-{hashlib.sha256(where.encode()).hexdigest()[:12]}"


Q_CLUSTER = {
    "name": queue_name(DATABASES["default"], REDIS_URL),
    "workers": 3,  # one for runs of the suite, one for calls that take their time, one is left for what must not wait
    "timeout": 240,
    "retry": 300,  # must exceed the timeout, or a running task is handed out again
    "max_attempts": 1,
    "ack_failures": True,
    "catch_up": False,
    "save_limit": 50,
    "poll": 1.0,
    "guard_cycle": 1.0,
    **({"redis": REDIS_URL} if REDIS_URL else {"orm": "default"}),
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["access.auth.KeyAuthentication", "access.auth.UserAuthentication", "access.auth.LoopbackAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["access.auth.NobodyMay"],  # a view that forgets to say who may use it lets nobody in
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_METADATA_CLASS": None,  # OPTIONS would describe views to whoever asks; /bench/schema describes them to those who may ask
    "EXCEPTION_HANDLER": "access.problems.handler",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,  # ?format=csv is the views' own
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Benchwarmers",
    "VERSION": VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/bench",
    # Fields of one name with other choices: names that do not change when one more comes.
    "ENUM_NAME_OVERRIDES": {
        "KeyKindEnum": ["key", "token", "test_token"],
        "SuggestionKindEnum": ["promote", "bench"],
        "BudgetKindEnum": ["owner", "team", "collection"],
    },
    "POSTPROCESSING_HOOKS": ["drf_spectacular.hooks.postprocess_schema_enums", "panels.api.schema.verbs_apart"],
}

LOG_LEVEL = env_str("BENCH_LOG_LEVEL", "INFO").upper()
if LOG_LEVEL not in ("DEBUG", "INFO", "WARNING", "ERROR"):
    raise ImproperlyConfigured("BENCH_LOG_LEVEL must be DEBUG, INFO, WARNING or ERROR.")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "benchwarmers.logs.JsonFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        "django-q": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        "urllib3": {"level": "ERROR"},  # its warnings quote what a server sent
    },
}
LOGGING_CONFIG = "logging.config.dictConfig"
