/**
 * Names of the IANA time zone database. The engine's `Intl` knows the database, but it also takes
 * offsets (`+03:00`) and abbreviations that mean different places to different people (`IST`).
 */
import { DateTime, Option, Schema } from "effect"
import { string } from "./fields.ts"

/** The names of the database without an area before them; no more will be added. */
const withoutArea =
  "CET|CST6CDT|Cuba|EET|EST|EST5EDT|Egypt|Eire|GB|GB-Eire|GMT|GMT[+-]?0|Greenwich|HST|Hongkong|" +
  "Iceland|Iran|Israel|Jamaica|Japan|Kwajalein|Libya|MET|MST|MST7MDT|NZ|NZ-CHAT|Navajo|PRC|" +
  "PST8PDT|Poland|Portugal|ROC|ROK|Singapore|Turkey|UCT|UTC|Universal|W-SU|WET|Zulu"

const form = new RegExp(`^(?:${withoutArea}|(?!SystemV/)[A-Za-z]+/[A-Za-z0-9_+/-]+)$`)

/** A time zone by its IANA name, kept as written: engines disagree on which alias is the right one. */
export const TimeZone = string("The IANA time zone in which the days of stats begin.")
  .annotate({ default: "UTC" })
  .check(
    Schema.makeFilter((name) => form.test(name) && Option.isSome(DateTime.zoneMakeNamed(name)), {
      message: "must be an IANA time zone, like UTC or Europe/Berlin"
    })
  )
