/** The OpenAPI document of the service, derived from the definitions once. */
import { OpenApi } from "effect/http-api"
import { Api } from "#rpc/api"
import { isJson, type Json } from "#rpc/openapi/json"

let known: Json | undefined

/** Returns the document. */
export const apiDocument = (): Json => {
  if (known === undefined) {
    const document: unknown = OpenApi.fromApi(Api)
    known = isJson(document) ? document : {}
  }
  return known
}
