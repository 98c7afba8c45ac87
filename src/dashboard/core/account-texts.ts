/** Texts of the developer's own pages: the account and its money. */

export const accountTexts = {
  pages: {
    nav: "Your pages",
    projects: "Projects",
    money: "Money",
    account: "Your account"
  },
  money: {
    title: "Money",
    lead: "What your account has, owes and uses, for all your projects together.",
    off: "Billing is off",
    offText:
      "This service charges nothing: usage is not metered and nothing is to be paid. Its operator turns " +
      "billing on with SVC_BILLING=on.",
    balance: "Balance",
    balanceNote: "prepaid",
    owed: "Owed",
    owedNote: "settled by the next payment",
    invite: "Invite credit",
    inviteNote: (granted: string) => `of ${granted}, for usage only`,
    thisMonth: "This month",
    estimate: "estimate, not charged yet",
    charged: "charged",
    owedNotice: (amount: string) =>
      `You owe ${amount}. Functions are suspended once money was owed for 72 hours, and run again when it ` +
      "is paid. Everything else goes on.",
    emptyNotice:
      "There is no credit. Functions can be turned on once there is some; everything else works.",
    pendingNotice: (amount: string) =>
      `${amount} of invite credit wait until you confirm your email address.`,
    confirmEmail: "Send the link",
    emailSent: "The link is on its way to your address.",
    topUp: "Top up",
    topUpLead: "Paid in advance by card, at the page of the payment provider.",
    amount: "Amount in US dollars",
    amountHint: "From 5 to 10,000.",
    toPayment: "Go on to pay",
    payTitle: (amount: string) => `Pay ${amount}`,
    payText:
      "The payment page opens in a new tab. The amount is credited when the payment provider reports it, " +
      "which this page waits for.",
    openPayment: "Open the payment page",
    waiting: "Waiting for the payment.",
    paid: (amount: string) => `${amount} are credited.`,
    ended: {
      expired: "The payment page has expired, and nothing was paid. Start again.",
      failed: "The payment failed, and nothing was credited. Start again."
    },
    close: "Close",
    returned: {
      paid: "Thank you. The payment appears below when the payment provider reports it, mostly at once.",
      cancelled: "Nothing was paid."
    },
    usage: "Usage",
    usageLead: "By month, in UTC. What runs now is counted every 20 seconds.",
    month: "Month",
    refresh: "Count now",
    component: "Component",
    quantity: "Quantity",
    cost: "Cost",
    total: "Total",
    carried: "Carried over from months before",
    chargedRow: "Charged",
    noUsage: "Nothing was used in this month.",
    asOf: "As of",
    components: {
      activePlayers: "Active players",
      connectionSeconds: "Connections",
      storageMibHours: "Storage",
      egressBytes: "Files served",
      voiceSeconds: "Voice calls",
      functionRequests: "Calls of functions",
      functionCpuMillis: "CPU time of functions"
    } as Readonly<Record<string, string>>,
    units: { bytes: "B" } as Readonly<Record<string, string>>,
    ledger: "Ledger",
    ledgerLead: "Every change of an account, newest first. It only grows.",
    noEntries: "No entry yet",
    noEntriesText: "A payment, a credit or the charge of a month appears here.",
    when: "When",
    entry: "Entry",
    accountHead: "Account",
    change: "Change",
    after: "After it",
    kinds: {
      topup: "Payment",
      invite: "Invite credit",
      usage: "Usage",
      refund: "Refund",
      adjustment: "Adjustment"
    },
    accounts: { prepaid: "prepaid", owed: "owed", invite: "invite credit" }
  },
  account: {
    title: "Your account",
    lead: "You as a developer. Players have accounts of their own.",
    profile: "Profile",
    email: "Email",
    name: "Name",
    noName: "not set",
    since: "Created",
    confirmed: "Confirmed",
    unconfirmed: "Not confirmed",
    confirm: "Send a link to confirm it",
    confirmSent: "The link is on its way to your address.",
    password: "Password",
    passwordLead: "A change ends all your other sessions.",
    noPasswordLead: "You sign in with a provider only. A password is a second way in.",
    current: "Current password",
    new: "New password",
    newHint: "At least 8 characters.",
    change: "Change password",
    set: "Set password",
    changed: "The password is changed. Other sessions have ended.",
    prove:
      "Sign in with the provider once more, to show that it is you. That counts for five minutes.",
    proveWith: (provider: string) => `Continue with ${provider}`,
    proven: "You have shown that it is you. That counts for five minutes, and once.",
    identities: "Sign-in with providers",
    identitiesLead: "Accounts elsewhere with which you sign in here.",
    linked: "linked",
    notLinked: "not linked",
    link: (provider: string) => `Link ${provider}`,
    unlink: (provider: string) => `Unlink ${provider}`,
    unlinkText: "You can no longer sign in with it. Your projects stay.",
    unlinkedDone: (provider: string) => `${provider} is unlinked.`,
    linkedDone: (provider: string) => `${provider} is linked.`,
    noProviders:
      "The operator of this service has set up no provider. They are set by SVC_DEVELOPER_GOOGLE_CLIENT_ID and " +
      "SVC_DEVELOPER_GITHUB_CLIENT_ID.",
    invite: "Invite code",
    inviteLead: "A code credits your account for usage, once for each account.",
    code: "Code",
    redeem: "Redeem",
    redeemed: (amount: string) => `${amount} are credited.`,
    redeemedPending: (amount: string) =>
      `${amount} are credited once you confirm your email address.`,
    session: "Session",
    sessionLead:
      "Ends 30 days after its last use, and at most 180 days after the sign-in. A change of the password ends " +
      "all others.",
    signOut: "Sign out"
  }
} as const
