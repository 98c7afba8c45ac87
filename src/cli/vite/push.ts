/** Pushes `svc.config.json` to the service beside Vite's dev server. */
import { readFile } from "node:fs/promises"
import { Result, Schema } from "effect"
import { ConfigPushed } from "#rpc/config"
import { changeText } from "../change-text.ts"
import { parseConfig, validateConfig, withoutSchema } from "../document.ts"
import type { LocatedIssue } from "../failures.ts"
import type { LocalService } from "./local-service.ts"

/** Outcome of a push: the changes, or the problems of the file. */
export type PushOutcome =
  | { readonly changed: ReadonlyArray<string>; readonly version: number }
  | { readonly problems: ReadonlyArray<string> }

const problemOf = ({ column, line, message, path }: LocatedIssue): string =>
  `${line}:${column}  ${path === "" ? "" : `${path}: `}${message}`

const Refused = Schema.Struct({
  error: Schema.Struct({ code: Schema.String, message: Schema.String })
})

/** Validates the file and pushes it; undefined if there is no file. */
export const pushFile = async (
  file: string,
  { secretKey, url }: LocalService
): Promise<PushOutcome | undefined> => {
  const text = await readFile(file, "utf8").catch(() => undefined)
  if (text === undefined) return undefined
  const parsed = Result.flatMap(
    Result.mapError(parseConfig(text), (issue) => [issue]),
    (config) => Result.map(validateConfig(config), () => config.document)
  )
  if (Result.isFailure(parsed)) return { problems: parsed.failure.map(problemOf) }
  const document = withoutSchema(parsed.success)
  const response = await fetch(`${url}/v1/config`, {
    method: "PUT",
    headers: { "x-svc-key": secretKey, "content-type": "application/json" },
    body: JSON.stringify(document)
  })
  const body: unknown = await response.json()
  if (!response.ok) {
    const { error } = await Schema.decodeUnknownPromise(Refused)(body)
    return { problems: [`${error.message} (${error.code})`] }
  }
  const { changed, configVersion } = await Schema.decodeUnknownPromise(ConfigPushed)(body)
  return { changed: changed.map((path) => changeText(document, path)), version: configVersion }
}
