(** Where values lie: sums of K columns over complete rows. A value u is in [−1, 1]. *)

Require Import Reals Lra Psatz List Permutation Lia.
From Tacit Require Import Sums Formulas Model Contributions.
Import ListNotations.
Local Open Scope R_scope.

Lemma places_size K z :
  total (fun i => Rsqr (z i)) (all_places K)
  = Rsqr (z None)
    + below K (fun j => Rsqr (z (Some (j, First))) + (Rsqr (z (Some (j, Second))) + 0)).
Proof. unfold all_places. now rewrite total_cons, total_map, total_pairs. Qed.

Lemma count_weight K :
  sqrt (places_count_weight_squared reals (INR K)) * sqrt (places_count_weight_squared reals (INR K))
  = INR K.
Proof. unfold places_count_weight_squared. apply sqrt_sqrt, pos_INR. Qed.

Lemma two_is_two :
  sqrt (places_square_weight_squared reals) * sqrt (places_square_weight_squared reals) = 2.
Proof. unfold places_square_weight_squared. cbn. apply sqrt_sqrt. lra. Qed.

Lemma below_const K (c : R) : below K (fun _ => c) = INR K * c.
Proof. unfold below. now rewrite total_const, seq_length. Qed.

(** One column: the largest squared change is 3 beside a row's own 1, where a row goes or comes, and
    4 where it is exchanged. *)
Lemma square_in_range u : Rabs u <= 1 -> 0 <= u * u <= 1.
Proof. intros range. split; [apply Rle_0_sqr |]. revert range. unfold Rabs.
destruct Rcase_abs; intros; nra. Qed.

Lemma column_alone u : Rabs u <= 1 -> u * u + 2 * (u * u * (u * u)) <= 3.
Proof. intros range%square_in_range. nra. Qed.

Lemma column_exchanged u u' : Rabs u <= 1 -> Rabs u' <= 1 ->
  Rsqr (u - u') + 2 * Rsqr (u * u - u' * u') <= 4.
Proof.
  intros range range'. set (t := Rabs (u - u')). set (m := Rabs (u + u')).
  assert (m <= 2 - t /\ 0 <= t /\ 0 <= m) as (sum & pos & pos').
  { unfold t, m. revert range range'. unfold Rabs. repeat destruct Rcase_abs; intros; lra. }
  assert (Rsqr (u - u') = t * t) as -> by (unfold t; rewrite (Rsqr_abs (u - u')); reflexivity).
  assert (Rsqr (u * u - u' * u') = t * t * (m * m)) as ->.
  { transitivity (Rsqr (u - u') * Rsqr (u + u')); [unfold Rsqr; ring |].
    rewrite (Rsqr_abs (u - u')), (Rsqr_abs (u + u')). reflexivity. }
  clearbody t m. assert (m * m <= (2 - t) * (2 - t)) by nra.
  apply Rle_trans with (t * t * (1 + 2 * ((2 - t) * (2 - t)))).
  - assert (t * t * (m * m) <= t * t * ((2 - t) * (2 - t))) by (apply Rmult_le_compat_l; nra). lra.
  - assert (0 <= (2 - t) * (2 * t * Rsqr (t - 1) + (2 - t))) as gap; [| unfold Rsqr in gap; lra].
    pose proof (Rle_0_sqr (t - 1)). apply Rmult_le_pos; [lra |]. apply Rplus_le_le_0_compat;
      [| lra]. apply Rmult_le_pos; lra.
Qed.

Lemma row_alone K u : (forall j, (j < K)%nat -> Rabs (u j) <= 1) ->
  total (fun i => Rsqr (places K (Some u) i)) (all_places K) <= places_squared reals (INR K).
Proof.
  intros range. rewrite places_size. unfold places_squared, places. cbn [times whole reals].
  unfold Rsqr at 1. rewrite count_weight.
  apply Rle_trans with (INR K + below K (fun _ => 3)); [| rewrite below_const; lra].
  apply Rplus_le_compat_l, below_le. intros j inside.
  pose proof (column_alone (u j) (range j inside)). pose proof two_is_two as two.
  rewrite Rsqr_mult. unfold Rsqr in *. rewrite two. lra.
Qed.

Lemma row_size K r : in_range K r ->
  size (all_places K) (places K r) <= sqrt (places_squared reals (INR K)).
Proof.
  intros range. apply sqrt_le_1_alt. destruct r as [u |]; [now apply row_alone |].
  rewrite places_size. unfold places, places_squared. cbn [times whole reals].
  rewrite below_const. pose proof (pos_INR K). unfold Rsqr. lra.
Qed.

Lemma rows_apart K r r' :
  in_range K r -> in_range K r' ->
    apart (all_places K) (places K r) (places K r') <= sqrt (places_squared reals (INR K)).
Proof.
  intros range range'. destruct r as [u |], r' as [u' |]; apply sqrt_le_1_alt.
  - rewrite places_size. unfold places_squared, places. cbn [times whole reals].
    rewrite Rminus_diag_eq, Rsqr_0, Rplus_0_l by reflexivity.
    apply Rle_trans with (below K (fun _ => 4)); [| rewrite below_const; lra].
    apply below_le. intros j inside.
    pose proof (column_exchanged (u j) (u' j) (range j inside) (range' j inside)) as moved.
    pose proof two_is_two as two. set (q := sqrt (places_square_weight_squared reals)) in *.
    change (number reals) with R in q. clearbody q.
    replace (Rsqr (q * (u j * u j) - q * (u' j * u' j)))
      with (q * q * Rsqr (u j * u j - u' j * u' j)) by (unfold Rsqr; ring).
    rewrite two. unfold Rsqr in *. lra.
  - apply Rle_trans with (2 := row_alone K u range). apply Req_le, total_ext. intros i _.
    unfold Rsqr. cbn [places]. ring.
  - apply Rle_trans with (2 := row_alone K u' range'). apply Req_le, total_ext. intros i _.
    unfold Rsqr. cbn [places]. ring.
  - rewrite places_size. unfold places, places_squared. cbn [times whole reals].
    rewrite below_const. pose proof (pos_INR K). unfold Rsqr. lra.
Qed.

(** Both relations, and the ends of the range attain it. *)
Lemma places_bound K rel D D' :
  (forall r, In r D \/ In r D' -> in_range K r) -> neighbours rel D D' ->
  apart (all_places K) (gathered (places K) D) (gathered (places K) D')
    <= sqrt (places_squared reals (INR K)).
Proof.
  intros lawful near.
  pose proof (sums_apart (all_places K) (places K) (in_range K) _ _ rel D D' (row_size K)
    (rows_apart K) lawful near) as bound.
  now destruct rel.
Qed.

Lemma places_of_persons K rel D D' :
  (forall rows, In rows D \/ In rows D' -> rows <> [] /\ forall r, In r rows -> in_range K r) ->
    neighbours rel D D' ->
  apart (all_places K) (gathered_means (places K) D) (gathered_means (places K) D')
    <= sqrt (places_squared reals (INR K)).
Proof.
  intros lawful near.
  pose proof (persons_apart (all_places K) (places K) (in_range K) _ _ rel D D' (sqrt_pos _)
    (sqrt_pos _)
                (row_size K) (rows_apart K) lawful near) as bound.
  now destruct rel.
Qed.

Definition end_of_range (u : R) : values := Some (fun _ => u).

Lemma places_attained K rel :
  exists D D', (forall r, In r D \/ In r D' -> in_range K r) /\ neighbours rel D D' /\
    apart (all_places K) (gathered (places K) D) (gathered (places K) D')
      = sqrt (places_squared reals (INR K)).
Proof.
  assert (in_range K (end_of_range 1) /\ in_range K (end_of_range (-1))) as lawful.
  { split; intros i _; cbn; unfold Rabs; destruct Rcase_abs; lra. }
  pose proof two_is_two as two. pose proof (count_weight K) as count.
  exists [end_of_range 1]. destruct rel; [exists [end_of_range (-1)] | exists []];
    (split; [| split]).
  - intros r [[<- | []] | [<- | []]]; apply lawful.
  - exists (end_of_range 1), (end_of_range (-1)), []. split; apply Permutation_refl.
  - unfold apart, size. f_equal. rewrite places_size. unfold gathered, places, end_of_range.
    cbn [total fold_right]. rewrite (below_ext K _ (fun _ => 4)).
    + rewrite below_const. unfold places_squared. cbn [times whole reals]. unfold Rsqr. ring.
    + intros j _. unfold Rsqr. ring.
  - intros r [[<- | []] | []]. apply lawful.
  - exists (end_of_range 1). left. apply Permutation_refl.
  - unfold apart, size. f_equal. rewrite places_size. unfold gathered, places, end_of_range.
    cbn [total fold_right].
    set (q := sqrt (places_square_weight_squared reals)) in *. change (number reals) with R in q.
    set (c := sqrt (places_count_weight_squared reals (INR K))) in *.
    change (number reals) with R in c.
    rewrite (below_ext K _ (fun _ => 3)).
    + rewrite below_const. unfold places_squared. cbn [times whole reals].
      transitivity (c * c + INR K * 3); [unfold Rsqr; ring | lra].
    + intros j _. transitivity (1 + q * q); [unfold Rsqr; ring | lra].
Qed.
