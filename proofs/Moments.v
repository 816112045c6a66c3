(** Private scales: moments of K columns. A value u is in [−1, 1], or missing. *)

Require Import Reals Lra Psatz List Permutation Lia.
From Tacit Require Import Sums Formulas Model Contributions.
Import ListNotations.
Local Open Scope R_scope.

Lemma moments_size K z :
  total (fun i => Rsqr (z i)) (all_moments K)
  = below K (fun j => Rsqr (z (j, Number)) + (Rsqr (z (j, First)) + (Rsqr (z (j, Second)) + 0))).
Proof. unfold all_moments. now rewrite total_pairs. Qed.

Lemma two_is_two :
  sqrt (moments_square_weight_squared reals) * sqrt (moments_square_weight_squared reals) = 2.
Proof. unfold moments_square_weight_squared. cbn. apply sqrt_sqrt. lra. Qed.

(** One column: the largest squared change is 4, whether a value goes, comes or is exchanged. *)
Lemma square_in_range u : Rabs u <= 1 -> 0 <= u * u <= 1.
Proof. intros range. split; [apply Rle_0_sqr |]. revert range. unfold Rabs.
destruct Rcase_abs; intros; nra. Qed.

Lemma column_alone u : Rabs u <= 1 -> 1 + u * u + 2 * (u * u * (u * u)) <= 4.
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

Lemma row_size K r : in_range K r ->
  size (all_moments K) (moments r) <= sqrt (moments_squared reals (INR K)).
Proof.
  intros range. apply sqrt_le_1_alt. rewrite moments_size. unfold moments_squared.
  cbn [times whole reals].
  apply Rle_trans with (below K (fun _ => 4));
    [| unfold below; rewrite total_const, seq_length; lra].
  apply below_le. intros j inside. specialize (range j inside). unfold moments. cbn [fst snd].
  destruct (r j) as [u |]; [| unfold Rsqr; lra]. pose proof (column_alone u range).
  pose proof two_is_two as two.
  rewrite Rsqr_mult. unfold Rsqr in *. rewrite two. lra.
Qed.

Lemma rows_apart K r r' :
  in_range K r -> in_range K r' ->
    apart (all_moments K) (moments r) (moments r') <= sqrt (moments_squared reals (INR K)).
Proof.
  intros range range'. apply sqrt_le_1_alt. rewrite moments_size. unfold moments_squared.
  cbn [times whole reals].
  apply Rle_trans with (below K (fun _ => 4));
    [| unfold below; rewrite total_const, seq_length; lra].
  apply below_le. intros j inside. specialize (range j inside). specialize (range' j inside).
  unfold moments. cbn [fst snd].
  pose proof two_is_two as two. set (q := sqrt (moments_square_weight_squared reals)) in *.
  change (number reals) with R in q.
  clearbody q. destruct (r j) as [u |], (r' j) as [u' |].
  - pose proof (column_exchanged u u' range range') as moved.
    replace (Rsqr (q * (u * u) - q * (u' * u'))) with (q * q * Rsqr (u * u - u' * u'))
      by (unfold Rsqr; ring).
    rewrite two. unfold Rsqr in *. lra.
  - pose proof (column_alone u range) as gone.
    replace (Rsqr (q * (u * u) - 0)) with (q * q * (u * u * (u * u))) by (unfold Rsqr; ring).
    rewrite two. unfold Rsqr in *. lra.
  - pose proof (column_alone u' range') as gone.
    replace (Rsqr (0 - q * (u' * u'))) with (q * q * (u' * u' * (u' * u'))) by (unfold Rsqr; ring).
    rewrite two. unfold Rsqr in *. lra.
  - unfold Rsqr. lra.
Qed.

(** Both relations, and the ends of the range attain it. *)
Lemma moments_bound K rel D D' :
  (forall r, In r D \/ In r D' -> in_range K r) -> neighbours rel D D' ->
  apart (all_moments K) (gathered moments D) (gathered moments D')
    <= sqrt (moments_squared reals (INR K)).
Proof.
  intros lawful near.
  pose proof (sums_apart (all_moments K) moments (in_range K) _ _ rel D D' (row_size K)
    (rows_apart K) lawful near) as bound.
  now destruct rel.
Qed.

Lemma moments_of_persons K rel D D' :
  (forall rows, In rows D \/ In rows D' -> rows <> [] /\ forall r, In r rows -> in_range K r) ->
    neighbours rel D D' ->
  apart (all_moments K) (gathered_means moments D) (gathered_means moments D')
    <= sqrt (moments_squared reals (INR K)).
Proof.
  intros lawful near.
  pose proof (persons_apart (all_moments K) moments (in_range K) _ _ rel D D' (sqrt_pos _)
    (sqrt_pos _)
                (row_size K) (rows_apart K) lawful near) as bound.
  now destruct rel.
Qed.

Definition end_of_range (u : R) : values := fun _ => Some u.

Lemma moments_attained K rel :
  exists D D', (forall r, In r D \/ In r D' -> in_range K r) /\ neighbours rel D D' /\
    apart (all_moments K) (gathered moments D) (gathered moments D')
      = sqrt (moments_squared reals (INR K)).
Proof.
  assert (forall j, in_range j (end_of_range 1) /\ in_range j (end_of_range (-1))) as lawful.
  { intros j. split; intros i _; cbn; unfold Rabs; destruct Rcase_abs; lra. }
  assert (below K (fun _ => 4) = moments_squared reals (INR K)) as four.
  { unfold below, moments_squared. rewrite total_const, seq_length. cbn. ring. }
  pose proof two_is_two as two.
  exists [end_of_range 1]. destruct rel; [exists [end_of_range (-1)] | exists []];
    (split; [| split]).
  - intros r [[<- | []] | [<- | []]]; apply lawful.
  - exists (end_of_range 1), (end_of_range (-1)), []. split; apply Permutation_refl.
  - unfold apart, size. f_equal. rewrite moments_size, <- four. apply below_ext. intros j _. cbn.
    unfold Rsqr. ring.
  - intros r [[<- | []] | []]. apply lawful.
  - exists (end_of_range 1). left. apply Permutation_refl.
  - unfold apart, size. f_equal. rewrite moments_size, <- four. apply below_ext. intros j _.
    unfold gathered, moments, end_of_range. cbn [fst snd total fold_right].
    set (q := sqrt (moments_square_weight_squared reals)) in *. change (number reals) with R in q.
    clearbody q.
    transitivity (2 + q * q); [unfold Rsqr; ring | lra].
Qed.
