/**
 * IANA time zone names. `Intl` knows the database, but it also accepts offsets (`+03:00`) and ambiguous
 * abbreviations (`IST`), which the config rejects.
 */
import { DateTime, Option, Schema } from "effect"
import { string } from "./fields.ts"

/** Time zones without an area prefix. The database adds no more of them. */
const withoutArea =
  "CET|CST6CDT|Cuba|EET|EST|EST5EDT|Egypt|Eire|GB|GB-Eire|GMT|GMT[+-]?0|Greenwich|HST|Hongkong|" +
  "Iceland|Iran|Israel|Jamaica|Japan|Kwajalein|Libya|MET|MST|MST7MDT|NZ|NZ-CHAT|Navajo|PRC|" +
  "PST8PDT|Poland|Portugal|ROC|ROK|Singapore|Turkey|UCT|UTC|Universal|W-SU|WET|Zulu"

const namePattern = new RegExp(`^(?:${withoutArea}|(?!SystemV/)[A-Za-z]+/[A-Za-z0-9_+/-]+)$`)

/** An IANA time zone name, kept as written because engines disagree on the canonical alias. */
export const TimeZone = string("The IANA time zone in which the days of stats begin.")
  .annotate({ default: "UTC" })
  .check(
    Schema.makeFilter(
      (name) => namePattern.test(name) && Option.isSome(DateTime.zoneMakeNamed(name)),
      {
        message: "must be an IANA time zone, like UTC or Europe/Berlin"
      }
    )
  )
