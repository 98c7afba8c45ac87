/**
 * The page for an address that does not exist. Programs get the error as JSON; a person in a browser
 * gets a page that leads on.
 */
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { paths } from "#rpc/paths"
import { plainPage } from "./look/plain-page.ts"

const page = plainPage(
  {
    title: "Not found",
    style: "body{max-width:36rem;margin:4rem auto;padding:0 1rem}",
    body:
      `<h1>There is no such page</h1><p>The address may be mistyped, or what it showed is gone.</p>` +
      `<p><a href="/">Start</a> · <a href="${paths.docs}">Documentation</a> · ` +
      `<a href="${paths.apiPage}">API reference</a></p>`
  },
  { status: 404, headers: { vary: "accept" } }
)

/** Whether a browser asks for a page. Addresses of the API answer as JSON to everybody. */
const asksForPage = ({ headers, method, url }: HttpServerRequest.HttpServerRequest): boolean =>
  (method === "GET" || method === "HEAD") &&
  headers["accept"]?.includes("text/html") === true &&
  !url.startsWith("/v1/")

/** Returns the page instead of the error `not_found`, where a browser asks for a page. */
export const withMissingPage = (
  request: HttpServerRequest.HttpServerRequest,
  response: HttpServerResponse.HttpServerResponse
): HttpServerResponse.HttpServerResponse => {
  const isError =
    response.status === 404 && response.headers["content-type"]?.startsWith("application/json")
  return isError === true && asksForPage(request) ? page : response
}
