(** Several responses: what one row or person moves is the mean, in squares, of what it would move
    with each response alone at √k times the weights of X'y and y'y. *)

Require Import Reals Lra Psatz List Permutation FunctionalExtensionality.
From Tacit Require Import Sums Formulas Model Blocks Tables.
Import ListNotations.
Local Open Scope R_scope.

Section Responses.
Context (d k : nat) (p : weights reals) (D D' : list (list answered)) (l l' : R).
Let s := of_answers D l.
Let s' := of_answers D' l'.

Lemma one_gram (E : list (list answered)) (m : R) (j : nat) :
  xtx (of_answers E m j) = xtx (of_answers E m 0).
Proof.
  apply functional_extensionality. intros i. apply functional_extensionality. intros n.
  cbn. rewrite <- !concat_map, !total_map. reflexivity.
Qed.

Lemma one_count (E : list (list answered)) (m : R) (j : nat) :
  count (of_answers E m j) = count (of_answers E m 0).
Proof. cbn. now rewrite !map_length. Qed.

Lemma one_solution (X : R) (E : list (list answered)) (m : R) (j : nat) :
  solved d X (of_answers E m 0) -> solved d X (of_answers E m j).
Proof. intros (least & smallest & near). exists least. now rewrite one_gram. Qed.

Lemma mean_of_parts (gram counted least weight square : R) (M Q : nat -> R) :
  INR k * (gram + below k (fun j => weight * M j) + below k (fun j => square * Q j)
           + counted + least)
  = below k (fun j => gram + INR k * weight * M j + INR k * square * Q j + counted + least).
Proof.
  unfold below. symmetry.
  rewrite (total_ext _ (fun j => (gram + counted + least)
                                 + (INR k * (weight * M j) + INR k * (square * Q j))))
    by (intros; lra).
  rewrite total_plus, total_const, seq_length, total_plus, !total_scale. ring.
Qed.

Lemma mean_of_responses :
  INR k * joint_squared d k p s s'
  = below k (fun j => change_squared d (as_one k p) (s j) (s' j)).
Proof.
  unfold joint_squared. rewrite mean_of_parts. apply below_ext. intros j _.
  unfold change_squared, s, s'.
  rewrite (one_gram D l j), (one_gram D' l' j), (one_count D l j), (one_count D' l' j).
  cbn [w v c e as_one eigenvalue of_answers of_persons sums].
  rewrite !Rsqr_mult, Rsqr_sqrt by apply pos_INR. reflexivity.
Qed.

Lemma responses_bound (bound : R) :
  (0 < k)%nat ->
  (forall j, (j < k)%nat -> change_squared d (as_one k p) (s j) (s' j) <= bound) ->
  joint_squared d k p s s' <= bound.
Proof.
  intros some each. apply Rmult_le_reg_l with (INR k); [now apply lt_0_INR |].
  rewrite mean_of_responses. apply Rle_trans with (below k (fun _ => bound)).
  - now apply below_le.
  - unfold below. rewrite total_const, seq_length. lra.
Qed.

Lemma change_nonneg (q : weights reals) (t t' : statistics) : 0 <= change_squared d q t t'.
Proof.
  unfold change_squared. repeat apply Rplus_le_le_0_compat.
  - apply below_nonneg. intros. apply below_nonneg. intros. apply Rle_0_sqr.
  - apply Rmult_le_pos; [apply Rle_0_sqr | apply below_nonneg; intros; apply Rle_0_sqr].
  - apply Rmult_le_pos; apply Rle_0_sqr.
  - apply Rmult_le_pos; apply Rle_0_sqr.
  - apply Rmult_le_pos; apply Rle_0_sqr.
Qed.

End Responses.
