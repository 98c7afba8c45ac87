/** Responses of callbacks: the redirect to the app, and the page for an unknown state. */
import { HttpServerResponse } from "effect/http"

const text = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Sign-in expired</title>
<style>
body { font: 1rem/1.5 system-ui, sans-serif; margin: 20vh auto; max-width: 28rem; padding: 0 1rem }
@media (prefers-color-scheme: dark) { body { background: #111; color: #eee } }
</style>
</head>
<body>
<h1>This sign-in has expired</h1>
<p>The sign-in took too long or is already complete. Close this page, return to the app and sign in
again.</p>
</body>
</html>
`

/** Response 400 to a callback whose state is expired, forged or already used. */
export const expiredPage = HttpServerResponse.text(text, {
  status: 400,
  contentType: "text/html; charset=utf-8",
  headers: {
    "content-security-policy":
      "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; " +
      "frame-ancestors 'none'",
    "referrer-policy": "no-referrer"
  }
})

/** Redirects without a referrer, since the URL contains a code, or a state that leads to one. */
export const redirectTo = (url: string) =>
  HttpServerResponse.redirect(url, { headers: { "referrer-policy": "no-referrer" } })
