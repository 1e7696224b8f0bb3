"""Sites with policies, over streams: who is waited for, and who deals."""

import pytest

from privet import TopDownClassifier
from privet.federation import FederatedTable, Refused
from privet.federation.wire import Reply, Request, decode_as, encode
from privet.network.policy import PolicyError
from privet.network.site import approve

from .houses import SCHEMA, STUDY, Notary, SiteLink, Town, houses


def learner(epsilon=0.5):
    return TopDownClassifier(epsilon=epsilon, schema=SCHEMA, max_nodes=1, n_thresholds=4)


def test_a_party_that_is_not_approved_is_waited_for_and_it_is_said_why(tmp_path):
    town = Town(tmp_path, approve="ask")
    approve(town.houses[1].policy, STUDY)
    said = []

    def tell(sentence):
        said.append(sentence)
        if "privet party approve" in sentence:  # the analyst telephones
            approve(town.houses[0].policy, STUDY)

    with town.dialling():
        model = town.study.fit(learner(), tell=tell)
    assert model.privacy_.private
    waited = next(each for each in said if "approve" in each)
    assert waited.startswith("waiting for north: it takes no part: its owner has not approved")
    assert said.index(waited) < said.index("north is here")


def test_another_organisation_deals(tmp_path):
    town = Town(tmp_path, protocol="secure-sum")
    notary = town.add_dealer()
    with town.dialling(notary):
        model = town.study.fit(learner(), run=tmp_path / "run")
    assert "the dealer 'notary', who is not the coordinator" in " ".join(model.privacy_.notes)
    assert [house.books()[0][1] for house in town.houses] == [0.5, 0.5]


class TestWhoDeals:
    """Nobody believes what the coordinator says about it."""

    def connect(self, some, dealer=None):
        links = [SiteLink(each.open()) for each in some]
        apart = None if dealer is None else SiteLink(dealer.open())
        try:
            FederatedTable(links, protocol="secure-sum", dealer=apart)
        finally:
            for link in links:
                link.site.close()

    def test_the_coordinator_cannot_deal_in_the_place_of_the_dealer(self, tmp_path):
        some = houses(tmp_path, ("north", "south"))
        notary = Notary(tmp_path, some)
        self.connect(some, notary)
        with pytest.raises(Refused, match="'notary' is not signed by the key with"):
            self.connect(some)
        other = Notary(tmp_path / "north", some, "other")  # a key that nobody has pinned
        for each in some:
            each.dealer = {"notary": notary.identity.fingerprint}
            each.write()
        with pytest.raises(Refused, match="'notary' is not signed"):
            self.connect(some, other)

    def test_an_owner_who_does_not_know_the_dealer_is_asked_first(self, tmp_path):
        some = houses(tmp_path, ("north", "south"))
        notary = Notary(tmp_path, some)
        some[1].dealer = {}
        some[1].write()
        with pytest.raises(Refused, match="a dealer besides the coordinator, whose fingerprint"):
            self.connect(some, notary)

    def test_the_dealer_seals_for_the_parties_alone(self, tmp_path):
        some = houses(tmp_path, ("north", "south"))
        notary = Notary(tmp_path, some)
        notary.parties["south"] = some[0].identity.fingerprint  # as if south's key were another's
        with pytest.raises(Refused, match="'south' is not signed"):
            self.connect(some, notary)
        del notary.parties["south"]
        with pytest.raises(Refused, match="whose fingerprint the dealer does not have"):
            self.connect(some, notary)

    def test_a_party_cannot_deal(self, tmp_path):
        some = houses(tmp_path, ("north", "south"))
        notary = Notary(tmp_path, some)
        notary.parties["west"] = notary.identity.fingerprint
        with pytest.raises(Refused, match="a party cannot deal"):
            notary.open()
        some[0].dealer = {"notary": some[1].identity.fingerprint}
        some[0].write()
        with pytest.raises(PolicyError, match="no party can deal"):
            some[0].policy  # noqa: B018

    def test_a_dealer_answers_its_own_studies_and_each_question_once(self, tmp_path):
        notary = Notary(tmp_path, houses(tmp_path, ("north", "south")))
        site = notary.open()
        with pytest.raises(Refused, match="deals in no study"):
            site.greet("other")
        link = SiteLink(site)
        number = link.send(0, "public_key")
        assert site.reply(STUDY, link.sent[number]) == site.reply(STUDY, link.sent[number])
        other = decode_as(Reply, site.reply(STUDY, encode(Request(number, 0, "join", ({},)))))
        assert (other.kind, "older than the last" in other.value) == ("refused", True)
        assert decode_as(Reply, site.reply(STUDY, b"nonsense")).kind == "failed"
        assert site.greet(STUDY)["last"] == number
