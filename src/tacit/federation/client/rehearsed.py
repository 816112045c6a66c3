"""A rehearsal of what a study would publish here, for the person who is about to approve it.

It is shown where it was asked for, and no answer of the site's is made of it: a site that stopped
because of what its rows say would tell that to whoever asks.
"""

from tacit.federation.client.policy import Policy
from tacit.federation.client.sources import table_at
from tacit.holder.publish import rehearse
from tacit.holder.rehearsal import Rehearsal
from tacit.study import Study


def rehearsed(study: Study, policy: Policy) -> Rehearsal:
    """What publishing would do, from the site's own rows and ledger; nothing is paid."""
    return rehearse(
        study,
        table_at(study, policy),
        holder=policy.holder,
        ledger=policy.ledger,
        dataset=policy.dataset,
    )
