/** Versions of a deployment, with the rollback to each. */
import type { ComponentChildren } from "preact"
import { useState } from "preact/hooks"
import { texts } from "../core/texts.ts"
import { Confirm } from "./dialog.tsx"
import { Badge, Button, bytes, count, Time } from "./basics.tsx"
import { Table } from "./table.tsx"

const { versions: own } = texts

/** A version as the table shows it. */
export interface Version {
  readonly version: number
  readonly live: boolean
  readonly message: string | null
  readonly createdAt: string
  /** Number of its files or modules, and their bytes. */
  readonly count: number
  readonly bytes: number
  /** Whether it can become the live one. */
  readonly ready: boolean
}

export const VersionTable = <V extends Version>({
  actionsOf,
  activate,
  countHead,
  question,
  versions
}: {
  readonly versions: ReadonlyArray<V>
  readonly countHead: string
  /** Makes a version the live one, after the confirmation. */
  readonly activate: (version: V) => Promise<void>
  /** Consequences of the change, for the confirmation. */
  readonly question: (version: V) => ComponentChildren
  /** Further actions on a version. */
  readonly actionsOf?: (version: V) => ComponentChildren
}) => {
  const [chosen, setChosen] = useState<V | undefined>(undefined)
  return (
    <>
      <Table
        rows={versions}
        keyOf={({ version }) => version}
        columns={[
          {
            head: own.version,
            cell: ({ live, message, ready, version }) => (
              <>
                <strong>{version}</strong> {live && <Badge kind="green">{own.live}</Badge>}
                {!ready && <Badge kind="amber">{own.uploading}</Badge>}
                <div class="soft small">{message}</div>
              </>
            )
          },
          { head: texts.players.created, cell: ({ createdAt }) => <Time at={createdAt} /> },
          { head: countHead, kind: "number minor", cell: (version) => count(version.count) },
          { head: own.size, kind: "number minor", cell: (version) => bytes(version.bytes) }
        ]}
        actions={(version) => (
          <div class="row end">
            {actionsOf?.(version)}
            {version.ready && !version.live && (
              <Button
                kind="small"
                label={own.activateTitle(version.version)}
                onClick={() => setChosen(version)}
              >
                {own.activate}
              </Button>
            )}
          </div>
        )}
      />
      {chosen !== undefined && (
        <Confirm
          title={own.activateTitle(chosen.version)}
          action={own.activate}
          close={() => setChosen(undefined)}
          run={() => activate(chosen)}
        >
          {question(chosen)}
        </Confirm>
      )}
    </>
  )
}
