/**
 * `GET /dev/voice` in development: a voice call of the demo project, to try in two tabs. Only browsers on
 * this machine can open it.
 */
import { readFileSync } from "node:fs"
import { Effect, FileSystem, Layer, Option, Path, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { NotFound } from "#rpc/errors/codes"
import { paths } from "#rpc/paths"
import { escapeHtml } from "#server/platform/mail/templates"
import { Settings } from "#server/platform/settings/settings"
import { errorResponse } from "../errors.ts"
import { isLocalRequest } from "../local-request.ts"
import { tokens } from "../look/tokens.ts"

/** Content security policy. `self` is the service, its socket included. */
const policy =
  "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; " +
  "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

const asset = (name: string): string => readFileSync(new URL(name, import.meta.url), "utf8")

/** Part of `dev-keys.json` that the page needs. */
const DevKeys = Schema.fromJsonString(
  Schema.Struct({ development: Schema.Struct({ publishableKey: Schema.String }) })
)

const noKeys = new NotFound({
  message: "The data directory has no readable dev-keys.json: start with an empty database."
})

const makePage = Effect.gen(function* () {
  const { dataDir } = yield* Settings
  const fs = yield* FileSystem.FileSystem
  const path = yield* Path.Path
  const template = asset("./page.html").replace("<style>", `<style>${tokens}`)
  return Effect.gen(function* () {
    const text = fs.readFileString(path.join(dataDir, "dev-keys.json"))
    const keys = yield* Effect.option(Effect.flatMap(text, Schema.decodeEffect(DevKeys)))
    if (Option.isNone(keys)) return errorResponse(NotFound, noKeys)
    const { publishableKey } = keys.value.development
    return HttpServerResponse.text(template.replace("{{key}}", escapeHtml(publishableKey)), {
      contentType: "text/html; charset=utf-8",
      headers: { "content-security-policy": policy, "referrer-policy": "no-referrer" }
    })
  })
})

/** Browsers fetch a module with their origin, as pages of other machines do, and it says nothing. */
const script = HttpServerResponse.text(asset("./page.js"), {
  contentType: "text/javascript; charset=utf-8"
})

/** The routes, only in development. */
export const VoicePage = Layer.unwrap(
  Effect.gen(function* () {
    const { production } = yield* Settings
    if (production) return Layer.empty
    const shown = yield* makePage
    const page = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      isLocalRequest(request) ? shown : Effect.succeed(errorResponse(NotFound, new NotFound()))
    )
    return Layer.mergeAll(
      HttpRouter.add("GET", paths.voicePage, page),
      HttpRouter.add("GET", `${paths.voicePage}.js`, script)
    )
  })
)
