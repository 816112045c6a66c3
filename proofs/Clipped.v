(** Clipped contributions: no row adds a vector longer than C. The corrections of a later visit are
    of this kind. *)

Require Import Reals Lra Psatz List Permutation Lia.
From Tacit Require Import Sums Formulas Model Contributions.
Import ListNotations.
Local Open Scope R_scope.

Lemma clip_bound b r : 0 <= b -> Rabs (clip b r) <= b.
Proof. intros. unfold clip, Rmax, Rmin, Rabs. repeat destruct Rle_dec; destruct Rcase_abs; lra. Qed.

Lemma clipped_gradient_length d C theta r : 0 <= C -> norm d (clipped_gradient d C theta r) <= C.
Proof.
  intros nonneg. unfold clipped_gradient. rewrite norm_scale.
  pose proof (sqrt_pos (dot d (x r) (x r)) : 0 <= norm d (x r)) as pos.
  destruct (Req_dec (norm d (x r)) 0) as [zero | some]; [rewrite zero; lra |].
  pose proof (clip_bound (C / norm d (x r)) (y r - dot d (x r) theta)) as cut.
  apply Rle_trans with (C / norm d (x r) * norm d (x r)).
  - apply Rmult_le_compat_r; [exact pos |]. apply cut. apply Rmult_le_pos; [exact nonneg |]. left.
    apply Rinv_0_lt_compat. lra.
  - apply Req_le. field. exact some.
Qed.

Section Clipped.
Context {A : Type} (d : nat) (f : A -> vector) (C : R).
Hypothesis cut : forall a, norm d (f a) <= C.

Lemma clipped_nonneg (a : A) : 0 <= C.
Proof. eapply Rle_trans; [apply (sqrt_pos (dot d (f a) (f a))) | apply (cut a)]. Qed.

Lemma clipped_bound rel (D D' : list A) :
  neighbours rel D D' ->
    apart (seq 0 d) (gathered f D) (gathered f D') <= clipped_sensitivity reals rel C.
Proof.
  intros near.
  pose proof (sums_apart (seq 0 d) f (fun _ => True) C (C + C) rel D D' (fun a _ => cut a))
    as bound.
  destruct rel; unfold clipped_sensitivity; cbn.
  - replace (2 * C) with (C + C) by lra. apply bound; auto.
    intros a a' _ _. eapply Rle_trans; [apply triangle |]. apply Rplus_le_compat; apply cut.
  - apply bound; auto. intros a a' _ _. eapply Rle_trans; [apply triangle |].
    apply Rplus_le_compat; apply cut.
Qed.

Lemma clipped_persons rel (D D' : list (list A)) :
  0 <= C -> (forall rows, In rows D \/ In rows D' -> rows <> []) -> neighbours rel D D' ->
  apart (seq 0 d) (gathered_means f D) (gathered_means f D') <= clipped_sensitivity reals rel C.
Proof.
  intros nonneg some near.
  assert (forall a a' : A, True -> True -> apart (seq 0 d) (f a) (f a') <= C + C) as close.
  { intros a a' _ _. eapply Rle_trans; [apply triangle |]. apply Rplus_le_compat; apply cut. }
  pose proof (persons_apart (seq 0 d) f (fun _ => True) C (C
    + C) rel D D' nonneg ltac:(lra) (fun a _ => cut a) close) as bound.
  destruct rel; unfold clipped_sensitivity; cbn; [replace (2 * C) with (C + C) by lra |];
    apply bound; auto.
Qed.
End Clipped.

(** Some contributions move that far. *)
Lemma clipped_attained d rel C :
  (1 <= d)%nat -> 0 <= C ->
  exists D D' : list vector, (forall z, In z D \/ In z D' -> norm d z <= C) /\
    neighbours rel D D' /\
    apart (seq 0 d) (gathered (fun z => z) D) (gathered (fun z => z) D')
      = clipped_sensitivity reals rel C.
Proof.
  intros some nonneg. set (axis := fun (a : R) (i : nat) => match i with 0%nat => a | _ => 0 end).
  assert (forall a, norm d (axis a) = Rabs a) as length.
  { intros a. unfold norm, dot. rewrite (below_single d 0); [apply sqrt_Rsqr_abs | lia
      |]. intros [| i] other; [lia | cbn; ring]. }
  exists [axis C]. destruct rel; [exists [axis (- C)] | exists []]; (split; [| split]).
  - intros z [[<- | []] | [<- | []]]; rewrite length, ?Rabs_Ropp, Rabs_right; lra.
  - exists (axis C), (axis (- C)), []. split; apply Permutation_refl.
  - unfold apart. rewrite (size_ext _ _ (axis (2 * C))); [| intros [| i]; cbn; ring].
    rewrite size_is_norm, length, Rabs_right; cbn; lra.
  - intros z [[<- | []] | []]. rewrite length, Rabs_right; lra.
  - exists (axis C). left. apply Permutation_refl.
  - unfold apart. rewrite (size_ext _ _ (axis C)); [| intros [| i]; cbn; ring].
    rewrite size_is_norm, length, Rabs_right; cbn; lra.
Qed.
