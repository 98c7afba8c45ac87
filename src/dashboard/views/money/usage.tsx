/** Usage of a month, and its cost. */
import { ask, type Response } from "../../core/api.ts"
import { texts } from "../../core/texts.ts"
import { lastMonths } from "../../core/time.ts"
import { cents, microUsd } from "../../parts/amounts.ts"
import { Choice, useAction } from "../../parts/form.tsx"
import { useLoad } from "../../parts/load.ts"
import { useQueryValue } from "../../parts/current-view.ts"
import { Failure, Loaded } from "../../parts/load-states.tsx"
import { Button, bytes, count, Panel, Time } from "../../parts/basics.tsx"
import { Table } from "../../parts/table.tsx"

const { money: own } = texts

export const usageRoute = "GET /v1/money/usage"
type Report = Response<typeof usageRoute>
type Component = Report["components"][number]

const monthsShown = 12

const quantityOf = ({ quantity, unit }: Component): string =>
  unit === "bytes" ? bytes(quantity) : `${count(quantity)} ${unit}`

const Costs = ({ report }: { readonly report: Report }) => (
  <Table
    rows={report.components}
    keyOf={({ component }) => component}
    columns={[
      { head: own.component, cell: ({ component }) => own.components[component] ?? component },
      { head: own.quantity, kind: "number", cell: quantityOf },
      { head: own.cost, kind: "number", cell: (component) => microUsd(component.microUsd) }
    ]}
    foot={
      <tfoot>
        <tr>
          <th scope="row">{own.total}</th>
          <td />
          <td class="number">
            <strong>{microUsd(report.totalMicroUsd)}</strong>
          </td>
        </tr>
        {report.carriedMicroUsd > 0 && (
          <tr>
            <th scope="row">{own.carried}</th>
            <td />
            <td class="number">{microUsd(report.carriedMicroUsd)}</td>
          </tr>
        )}
        <tr>
          <th scope="row">{own.chargedRow}</th>
          <td />
          <td class="number">
            {report.estimate ? (
              <span class="soft">{own.estimate}</span>
            ) : (
              <strong>{cents(report.chargedCents)}</strong>
            )}
          </td>
        </tr>
      </tfoot>
    }
  />
)

export const Usage = () => {
  const [period, setPeriod] = useQueryValue("month")
  const load = useLoad(`usage/${period}`, (signal) =>
    ask(usageRoute, { query: { period }, signal })
  )
  const { busy, error, run } = useAction(async () => {
    await ask(usageRoute, { query: { period, refresh: "true" } })
    load.refresh()
  })
  const [current = "", ...before] = lastMonths(monthsShown)
  return (
    <Panel
      title={own.usage}
      lead={own.usageLead}
      actions={
        <>
          <Choice
            label={own.month}
            hideLabel
            value={period}
            options={[["", current], ...before.map((month) => [month, month] as const)]}
            onChoose={setPeriod}
          />
          <Button disabled={busy} onClick={run}>
            {own.refresh}
          </Button>
        </>
      }
    >
      {error !== undefined && <Failure error={error} />}
      <Loaded of={load}>
        {(report) =>
          report.components.length === 0 ? (
            <p class="body soft">{own.noUsage}</p>
          ) : (
            <>
              <Costs report={report} />
              <p class="body rule soft small">
                {own.asOf} <Time at={report.refreshedAt} />
              </p>
            </>
          )
        }
      </Loaded>
    </Panel>
  )
}
