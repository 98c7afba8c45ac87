/** Prepaid money of the developer: balance, debt and usage. */
import { useState } from "preact/hooks"
import { useLocation } from "preact-iso"
import { ask, type Response } from "../../core/api.ts"
import { notify, platform } from "../../core/state.ts"
import { texts } from "../../core/texts.ts"
import { aboutCents, cents } from "../../parts/amounts.ts"
import { Failure, Empty, Loaded } from "../../parts/load-states.tsx"
import { useAction } from "../../parts/form.tsx"
import { useLoad } from "../../parts/load.ts"
import { Button, Title } from "../../parts/basics.tsx"
import { Ledger } from "./ledger.tsx"
import { TopUp } from "./checkout.tsx"
import { Usage, usageRoute } from "./usage.tsx"

const { money: own } = texts

const route = "GET /v1/money/prepaid"
type Balance = Response<typeof route>
type Report = Response<typeof usageRoute>

const pollMillis = 10_000

const Figure = ({
  label,
  note,
  value
}: {
  readonly label: string
  readonly value: string
  readonly note: string
}) => (
  <div class="card-figure">
    <div class="label">{label}</div>
    <div class="value">{value}</div>
    <div class="note">{note}</div>
  </div>
)

const Figures = ({
  balance: { balance, invite, owed },
  report
}: {
  readonly balance: Balance
  readonly report: Report | undefined
}) => (
  <div class="cards">
    <Figure label={own.balance} value={cents(balance)} note={own.balanceNote} />
    <Figure label={own.owed} value={cents(owed)} note={own.owedNote} />
    {invite !== null && (
      <Figure
        label={own.invite}
        value={cents(invite.remaining)}
        note={own.inviteNote(cents(invite.granted))}
      />
    )}
    <Figure
      label={own.thisMonth}
      value={report === undefined ? "–" : aboutCents(report.totalMicroUsd)}
      note={report?.estimate === false ? own.charged : own.estimate}
    />
  </div>
)

const Pending = ({ amount }: { readonly amount: number }) => {
  const [isSent, setSent] = useState(false)
  const { busy, error, run } = useAction(async () => {
    await ask("POST /v1/developers/me/email/verification")
    setSent(true)
    notify(own.emailSent)
  })
  return (
    <div class="notice amber">
      <p>{own.pendingNotice(cents(amount))}</p>
      {!isSent && (
        <Button kind="small" disabled={busy} onClick={run}>
          {own.confirmEmail}
        </Button>
      )}
      {error !== undefined && <Failure error={error} />}
    </div>
  )
}

/** Notice for a return from the payment provider. */
const Returned = () => {
  const { query } = useLocation()
  const { payment } = query
  if (payment !== "paid" && payment !== "cancelled") return null
  return (
    <p class="notice" role="status">
      {own.returned[payment]}
    </p>
  )
}

const Notices = ({ balance: { balance, invite, owed } }: { readonly balance: Balance }) => {
  const credit = balance + (invite?.remaining ?? 0)
  return (
    <>
      {owed > 0 && <p class="notice red">{own.owedNotice(cents(owed))}</p>}
      {owed === 0 && credit === 0 && <p class="notice amber">{own.emptyNotice}</p>}
      {invite !== null && invite.pending > 0 && <Pending amount={invite.pending} />}
    </>
  )
}

const Account = () => {
  const balance = useLoad("money", (signal) => ask(route, { signal }), pollMillis)
  const month = useLoad("usage/", (signal) => ask(usageRoute, { signal }), pollMillis)
  return (
    <>
      <Returned />
      <Loaded of={balance}>
        {(data) => (
          <>
            <Notices balance={data} />
            <Figures balance={data} report={month.data} />
            <TopUp refresh={balance.refresh} />
            <Usage />
            {/* A new sum of the accounts has a new entry. */}
            <Ledger key={JSON.stringify(data)} />
          </>
        )}
      </Loaded>
    </>
  )
}

export const Money = () => (
  <>
    <Title text={own.title} lead={own.lead} />
    {platform.value?.billing.enabled === true ? (
      <Account />
    ) : (
      <section class="panel" aria-label={own.off}>
        <Empty title={own.off} text={own.offText} />
      </section>
    )}
  </>
)
