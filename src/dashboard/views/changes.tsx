/**
 * Changes of an audit log entry, as a difference: values in the entry, or versions of the config.
 */
import { useState } from "preact/hooks"
import { ask, type Response } from "../core/api.ts"
import { texts } from "../core/texts.ts"
import { exactTime } from "../core/time.ts"
import { Dialog } from "../parts/dialog.tsx"
import { Diff } from "../parts/diff.tsx"
import { useLoad } from "../parts/load.ts"
import { useCurrentView } from "../parts/current-view.ts"
import { Loaded } from "../parts/load-states.tsx"
import { Button, JsonText } from "../parts/basics.tsx"

const { audit: own } = texts

type Entry = Response<"GET /v1/projects/:projectId/audit">["entries"][number]

const versionRoute = "GET /v1/projects/:projectId/environments/:env/config/versions/:version"

interface Change {
  readonly before: unknown
  readonly after: unknown
}

const isChange = (value: unknown): value is Change =>
  typeof value === "object" && value !== null && "before" in value && "after" in value

const textOf = (name: string, value: unknown): string => {
  const text = typeof value === "string" ? value : JSON.stringify(value)
  return name === "" ? text : `${name}: ${text}`
}

/** The changed values of an entry by name, and what else it says. */
const partsOf = (details: Entry["details"]) => {
  if (isChange(details)) {
    const { after, before, ...others } = details
    return { changes: [["", { before, after }]] as const, others }
  }
  const all = Object.entries(details)
  return {
    changes: all.flatMap(([name, value]) => (isChange(value) ? [[name, value] as const] : [])),
    others: Object.fromEntries(all.filter(([, value]) => !isChange(value)))
  }
}

const ConfigDifference = ({ env, version }: { readonly env: string; readonly version: number }) => {
  const { project } = useCurrentView()
  const read = async (number: number, signal: AbortSignal): Promise<string> => {
    const params = { projectId: project.id, env, version: `${number}` }
    return JSON.stringify(await ask(versionRoute, { params, signal }), null, 2)
  }
  const load = useLoad(`${project.id}/${env}/config-change/${version}`, async (signal) => {
    const [before, after] = await Promise.all([read(version - 1, signal), read(version, signal)])
    return { before, after }
  })
  return (
    <Loaded of={load}>
      {({ after, before }) => <Diff before={before} after={after} label={own.difference} />}
    </Loaded>
  )
}

/** The difference of a push, which is in the versions of the config. */
const ConfigChange = ({ env, version }: { readonly env: string; readonly version: number }) => {
  const [open, setOpen] = useState(false)
  return (
    <div>
      <Button kind="small" label={own.showVersion(version)} onClick={() => setOpen(true)}>
        {own.show}
      </Button>
      {open && (
        <Dialog title={own.showVersion(version)} wide close={() => setOpen(false)}>
          <ConfigDifference env={env} version={version} />
        </Dialog>
      )}
    </div>
  )
}

export const Changes = ({ entry: { at, details, env, target } }: { readonly entry: Entry }) => {
  const { changes, others } = partsOf(details)
  return (
    <>
      {changes.length > 0 && (
        <Diff
          before={changes.map(([name, { before }]) => textOf(name, before)).join("\n")}
          after={changes.map(([name, { after }]) => textOf(name, after)).join("\n")}
          label={`${own.difference}, ${exactTime(at)}`}
        />
      )}
      {target.kind === "config" && env !== null && (
        <ConfigChange env={env} version={Number(target.id)} />
      )}
      {Object.keys(others).length > 0 && <JsonText label={own.details} value={others} />}
    </>
  )
}
