"""Zones that share their rules before 1970 with another zone in Java, though not in every database that Python reads.

The time zone database merges zones that have been alike since 1970 (its file `backward`), and so do Java and DuckDB.
Debian and others build it with the rules that each of these zones had before ("PACKRATDATA=backzone").
"""

from __future__ import annotations

from datetime import tzinfo
from zoneinfo import ZoneInfo

_MERGED = {
    "Africa/Abidjan": (
        "Africa/Accra Africa/Bamako Africa/Banjul Africa/Conakry Africa/Dakar Africa/Freetown Africa/Lome "
        "Africa/Nouakchott Africa/Ouagadougou Atlantic/Reykjavik Atlantic/St_Helena"
    ),
    "Africa/Johannesburg": "Africa/Maseru Africa/Mbabane",
    "Africa/Lagos": (
        "Africa/Bangui Africa/Brazzaville Africa/Douala Africa/Kinshasa Africa/Libreville Africa/Luanda "
        "Africa/Malabo Africa/Niamey Africa/Porto-Novo"
    ),
    "Africa/Maputo": (
        "Africa/Blantyre Africa/Bujumbura Africa/Gaborone Africa/Harare Africa/Kigali Africa/Lubumbashi Africa/Lusaka"
    ),
    "Africa/Nairobi": (
        "Africa/Addis_Ababa Africa/Asmara Africa/Dar_es_Salaam Africa/Djibouti Africa/Kampala Africa/Mogadishu "
        "Indian/Antananarivo Indian/Comoro Indian/Mayotte"
    ),
    "America/Panama": "America/Atikokan America/Cayman",
    "America/Phoenix": "America/Creston",
    "America/Puerto_Rico": (
        "America/Anguilla America/Antigua America/Aruba America/Blanc-Sablon America/Curacao America/Dominica "
        "America/Grenada America/Guadeloupe America/Montserrat America/Port_of_Spain America/St_Kitts "
        "America/St_Lucia America/St_Thomas America/St_Vincent America/Tortola"
    ),
    "America/Toronto": "America/Nassau",
    "Asia/Bangkok": "Asia/Phnom_Penh Asia/Vientiane Indian/Christmas",
    "Asia/Dubai": "Asia/Muscat Indian/Mahe Indian/Reunion",
    "Asia/Kuching": "Asia/Brunei",
    "Asia/Qatar": "Asia/Bahrain",
    "Asia/Riyadh": "Antarctica/Syowa Asia/Aden Asia/Kuwait",
    "Asia/Singapore": "Asia/Kuala_Lumpur",
    "Asia/Yangon": "Indian/Cocos",
    "Europe/Belgrade": "Europe/Ljubljana Europe/Sarajevo Europe/Skopje Europe/Zagreb",
    "Europe/Berlin": "Europe/Copenhagen Europe/Oslo Europe/Stockholm",
    "Europe/Brussels": "Europe/Amsterdam Europe/Luxembourg",
    "Europe/London": "Europe/Guernsey Europe/Isle_of_Man Europe/Jersey",
    "Europe/Paris": "Europe/Monaco",
    "Europe/Zurich": "Europe/Vaduz",
    "Indian/Maldives": "Indian/Kerguelen",
    "Pacific/Auckland": "Antarctica/McMurdo",
    "Pacific/Guadalcanal": "Pacific/Pohnpei",
    "Pacific/Guam": "Pacific/Saipan",
    "Pacific/Pago_Pago": "Pacific/Midway",
    "Pacific/Port_Moresby": "Antarctica/DumontDUrville Pacific/Chuuk",
    "Pacific/Tarawa": "Pacific/Funafuti Pacific/Majuro Pacific/Wake Pacific/Wallis",
}
"""The merged zones, by the zone whose rules they have."""
_RULES = {zone: into for into, zones in _MERGED.items() for zone in zones.split()}


def rules_at(zone: tzinfo, micros: int) -> tzinfo:
    """The zone whose rules Java uses for `zone` at a time in microseconds since 1970, in UTC or on its clock."""
    if micros < 0 and isinstance(zone, ZoneInfo) and zone.key in _RULES:
        return ZoneInfo(_RULES[zone.key])
    return zone
