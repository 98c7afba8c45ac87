/**
 * `GET /v1/config/schema.json`: the JSON Schema of `svc.config.json`, for editors. Public: it contains
 * nothing of any environment.
 */
import { HttpRouter, HttpServerResponse } from "effect/http"
import { configJsonSchemaText } from "#rpc/config-document/json-schema"
import { paths } from "#rpc/paths"

const maxAgeSeconds = 3600

export const ConfigSchemaRoute = HttpRouter.add(
  "GET",
  paths.configSchema,
  HttpServerResponse.text(configJsonSchemaText(), {
    contentType: "application/schema+json",
    headers: { "cache-control": `public, max-age=${maxAgeSeconds}` }
  })
)
