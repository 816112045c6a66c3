(** Any statistic that is a sum over rows: what a bound on rows says about tables, and about tables
    of persons.

    Later mechanisms need no more than a bound on the contribution of one row, or on the distance of
    two. *)

Require Import Reals Lra Psatz List Permutation.
From Tacit Require Import Sums Formulas Model Tables.
Import ListNotations.
Local Open Scope R_scope.

Section Sums_of_contributions.
Context {A I : Type} (indices : list I) (f : A -> I -> R).
Local Notation size := (size indices).
Local Notation apart := (apart indices).
Local Notation mean := (mean f).

Lemma size_ext z z' : (forall i, z i = z' i) -> size z = size z'.
Proof. intros same. unfold size. f_equal. apply total_ext. intros. now rewrite same. Qed.

Lemma size_le z B : 0 <= B -> (size z <= B <-> total (fun i => Rsqr (z i)) indices <= B * B).
Proof.
  intros nonneg. unfold size.
  pose proof (total_squares z indices : 0 <= total (fun i => Rsqr (z i)) indices) as pos.
  split; intros bound.
  - pose proof (sqrt_pos (total (fun i => Rsqr (z i)) indices)). rewrite <- (sqrt_sqrt _ pos). nra.
  - rewrite <- (sqrt_square B nonneg). now apply sqrt_le_1_alt.
Qed.

Lemma size_pos z : 0 <= size z.
Proof. apply sqrt_pos. Qed.

Lemma size_sign z sign : Rsqr sign = 1 -> size (fun i => sign * z i) = size z.
Proof. intros one. unfold size. f_equal. apply total_ext. intros. rewrite Rsqr_mult, one. lra. Qed.

Lemma triangle z z' : apart z z' <= size z + size z'.
Proof.
  pose proof (size_pos z) as p. pose proof (size_pos z') as p'. apply size_le; [lra |].
  pose proof (proj1 (size_le z (size z) p) (Rle_refl _)) as here.
  pose proof (proj1 (size_le z' (size z') p') (Rle_refl _)) as there.
  assert (total (fun i => Rsqr (z i - z' i)) indices
          = total (fun i => Rsqr (z i)) indices + total (fun i => Rsqr (z' i)) indices
            - 2 * total (fun i => z i * z' i) indices) as ->.
  { rewrite <- total_scale, <- total_plus,
      <- total_minus. apply total_ext. intros. unfold Rsqr. ring. }
  assert (- total (fun i => z i * z' i) indices <= size z * size z'); [| lra].
  assert (Rsqr (total (fun i => z i * z' i) indices) <= Rsqr (size z * size z')) as squares.
  { eapply Rle_trans; [apply cauchy_schwarz |]. rewrite Rsqr_mult.
    apply Rmult_le_compat; [apply total_squares | apply total_squares | exact here | exact there]. }
  apply Rsqr_le_abs_0 in squares. rewrite (Rabs_right (size z * size z')) in squares by nra.
  pose proof (Rle_abs (- total (fun i => z i * z' i) indices)) as sign. rewrite Rabs_Ropp in sign.
  lra.
Qed.

(** A mean is no longer than the longest, and no further from anything than the furthest. *)
Lemma mean_size (rows : list A) (g : A -> I -> R) B :
  rows <> [] -> 0 <= B -> (forall a, In a rows -> size (g a) <= B) ->
  size (fun i => / INR (length rows) * total (fun a => g a i) rows) <= B.
Proof.
  intros some nonneg each. apply size_le; [exact nonneg |].
  assert (0 < INR (length rows)) as m.
  { destruct rows; [easy |]. cbn [length]. apply lt_0_INR. apply Nat.lt_0_succ. }
  set (n := INR (length rows)) in *.
  apply Rle_trans with (total (fun i => / n * total (fun a => Rsqr (g a i)) rows) indices).
  - apply total_le. intros i _.
    pose proof (cauchy_schwarz (fun _ => 1) (fun a => g a i) rows) as jensen.
    rewrite (total_ext (fun a => 1 * g a i) (fun a => g a i)) in jensen by (intros; lra).
    rewrite (total_const (1 * 1)) in jensen. fold n in jensen.
    change (fun a => g a i * g a i) with (fun a => Rsqr (g a i)) in jensen.
    rewrite Rsqr_mult.
    apply Rle_trans with (Rsqr (/ n) * (n * (1 * 1) * total (fun a => Rsqr (g a i)) rows)).
    + apply Rmult_le_compat_l; [apply Rle_0_sqr | exact jensen].
    + apply Req_le. unfold Rsqr at 1. field. lra.
  - rewrite total_scale, total_exchange.
    apply Rle_trans with (/ n * total (fun _ => B * B) rows).
    + apply Rmult_le_compat_l; [left; now apply Rinv_0_lt_compat |].
      apply total_le. intros a inside. apply (size_le (g a) B nonneg). auto.
    + rewrite total_const. fold n. apply Req_le. field. lra.
Qed.

Lemma mean_apart (rows : list A) z B :
  rows <> [] -> 0 <= B -> (forall a, In a rows -> apart (f a) z <= B) -> apart (mean rows) z <= B.
Proof.
  intros some nonneg each. unfold apart.
  rewrite (size_ext _ (fun i => / INR (length rows) * total (fun a => f a i - z i) rows)).
  - now apply (mean_size rows (fun a i => f a i - z i)).
  - intros i. unfold mean. rewrite total_minus, total_const. field. destruct rows; [easy |].
    apply not_0_INR. easy.
Qed.

Lemma apart_sym z z' : apart z z' = apart z' z.
Proof. unfold apart, size. f_equal. apply total_ext. intros. unfold Rsqr. ring. Qed.

Lemma means_apart (rows rows' : list A) B :
  rows <> [] -> rows' <> [] -> 0 <= B -> (forall a a', In a rows -> In a' rows' ->
    apart (f a) (f a') <= B) ->
  apart (mean rows) (mean rows') <= B.
Proof.
  intros some some' nonneg each. apply mean_apart; [exact some | exact nonneg |]. intros a inside.
  rewrite apart_sym. apply mean_apart; [exact some' | exact nonneg |]. intros a' inside'.
  rewrite apart_sym. auto.
Qed.
End Sums_of_contributions.

(** Vectors of d entries are such contributions. *)
Lemma size_is_norm d z : size (seq 0 d) z = norm d z.
Proof. reflexivity. Qed.

(** From one contribution to tables. *)
Section Neighbours.
Context {A I : Type} (indices : list I) (f : A -> I -> R).

Lemma sums_apart (allowed : A -> Prop) (longest diameter : R) (rel : relation) (D D' : list A) :
  (forall a, allowed a -> size indices (f a) <= longest) ->
  (forall a a', allowed a -> allowed a' -> apart indices (f a) (f a') <= diameter) ->
  (forall a, In a D \/ In a D' -> allowed a) -> neighbours rel D D' ->
  apart indices (gathered f D) (gathered f D') <= match rel with ReplaceOne => diameter
    | AddRemove => longest end.
Proof.
  intros short close lawful near. destruct rel.
  - destruct (replaced A D D' near) as (a & a' & inside & inside' & moved & _).
    unfold apart. rewrite (size_ext indices _ (fun i => f a i - f a' i)) by (intros i; apply moved).
    apply close; auto.
  - destruct (removed A D D' near) as (a & sign & inside & one & moved & _).
    unfold apart. rewrite (size_ext indices _ (fun i => sign * f a i)) by (intros i; apply moved).
    rewrite size_sign by exact one. auto.
Qed.
End Neighbours.

Section Persons.
Context {A I : Type} (indices : list I) (f : A -> I -> R).

(** The convexity argument: a mean of legal rows' contributions needs no more noise than one row
    does. *)
Theorem persons_apart (allowed : A -> Prop) (longest diameter : R) (rel : relation)
  (D D' : list (list A)) :
  0 <= longest -> 0 <= diameter ->
  (forall a, allowed a -> size indices (f a) <= longest) ->
  (forall a a', allowed a -> allowed a' -> apart indices (f a) (f a') <= diameter) ->
  (forall rows, In rows D \/ In rows D' -> rows <> [] /\ forall a, In a rows -> allowed a) ->
    neighbours rel D D' ->
  apart indices (gathered_means f D) (gathered_means f D')
  <= match rel with ReplaceOne => diameter | AddRemove => longest end.
Proof.
  intros nonneg nonneg' short close lawful near.
  apply (sums_apart indices (mean f) (fun rows => rows <> [] /\ forall a, In a rows -> allowed a));
    [| | exact lawful | exact near].
  - intros rows [some legal]. apply mean_size; auto.
  - intros rows rows' [some legal] [some' legal']. apply means_apart; auto.
Qed.
End Persons.

(** Noise on each number of such a sum. *)
Lemma sums_covered (I : Type) (indices : list I) (loud z z' : I -> R) (multiplier delta : R) :
  0 < multiplier -> 0 < delta -> apart indices z z' <= delta ->
    (forall i, multiplier * delta <= loud i) ->
  size indices (fun i => (z i - z' i) / loud i) <= / multiplier.
Proof.
  intros positive some bounded noisy. set (needed := multiplier * delta) in *.
  assert (0 < needed) as need by now apply Rmult_lt_0_compat.
  apply size_le; [left; now apply Rinv_0_lt_compat |].
  apply (size_le indices (fun i => z i - z' i) delta) in bounded; [| lra].
  apply Rle_trans with (/ Rsqr needed * total (fun i => Rsqr (z i - z' i)) indices).
  - rewrite <- total_scale. apply total_le. intros i _. specialize (noisy i).
    replace (Rsqr ((z i - z' i) / loud i)) with (/ Rsqr (loud i) * Rsqr (z i - z' i))
      by (unfold Rsqr; field; lra).
    apply Rmult_le_compat_r; [apply Rle_0_sqr |]. apply Rinv_le_contravar;
      [apply Rsqr_pos_lt; lra | apply Rsqr_incr_1; lra].
  - apply Rle_trans with (/ Rsqr needed * (delta * delta)).
    + apply Rmult_le_compat_l; [left; apply Rinv_0_lt_compat, Rsqr_pos_lt; lra | exact bounded].
    + apply Req_le. unfold needed, Rsqr. field. lra.
Qed.
