(** From one block to a table: neighbours, the smallest eigenvalue, all parts together. *)

Require Import Reals Lra Psatz List Permutation.
From Tacit Require Import Sums Formulas Model Optimum Blocks.
Import ListNotations.
Local Open Scope R_scope.

(** What neighbours share cancels. *)
Lemma replaced (A : Type) (D D' : list A) :
  replace_one D D' ->
  exists a a', In a D /\ In a' D' /\ (forall f, total f D - total f D' = f a - f a') /\
    length D = length D'.
Proof.
  intros (a & a' & rest & before & after). exists a, a'. repeat split.
  - apply (Permutation_in a (Permutation_sym before)), in_eq.
  - apply (Permutation_in a' (Permutation_sym after)), in_eq.
  - intros f.
    rewrite (total_permutation f _ _ before), (total_permutation f _ _ after), !total_cons. lra.
  - now rewrite (Permutation_length before), (Permutation_length after).
Qed.

Lemma removed (A : Type) (D D' : list A) :
  add_remove D D' ->
  exists a sign, (In a D \/ In a D') /\ Rsqr sign = 1 /\
    (forall f, total f D - total f D' = sign * f a)
                 /\ INR (length D) - INR (length D') = sign.
Proof.
  intros [a [more | less]].
  - exists a, 1. repeat split.
    + left. apply (Permutation_in a (Permutation_sym more)), in_eq.
    + unfold Rsqr. lra.
    + intros f. rewrite (total_permutation f _ _ more), total_cons. lra.
    + rewrite (Permutation_length more). cbn [length]. rewrite S_INR. lra.
  - exists a, (-1). repeat split.
    + right. apply (Permutation_in a (Permutation_sym less)), in_eq.
    + unfold Rsqr. lra.
    + intros f. rewrite (total_permutation f _ _ less), total_cons. lra.
    + rewrite (Permutation_length less). cbn [length]. rewrite S_INR. lra.
Qed.

(** The smallest eigenvalue moves no further than u'X'Xu does. *)
Lemma quadratic_minus d M M' u :
  quadratic d M u - quadratic d M' u = quadratic d (fun i k => M i k - M' i k) u.
Proof.
  unfold quadratic, below. rewrite <- total_minus. apply total_ext. intros i _.
  rewrite <- total_minus.
  apply total_ext. intros k _. ring.
Qed.

Lemma quadratic_ext d M M' u : (forall i k, M i k = M' i k) -> quadratic d M u = quadratic d M' u.
Proof. intros same. apply below_ext. intros i _. apply below_ext. intros k _. now rewrite same. Qed.

Lemma quadratic_gram d rows u :
  quadratic d (gram rows) u = total (fun r => Rsqr (dot d u (x r))) rows.
Proof.
  unfold quadratic, gram, below. set (D := seq 0 d).
  transitivity
    (total (fun i => total (fun k => total (fun r => u i * x r i * (u k * x r k)) rows) D) D).
  { apply total_ext. intros i _. apply total_ext. intros k _.
    rewrite <- total_scale, <- total_scale_r. apply total_ext. intros. ring. }
  transitivity
    (total (fun i => total (fun r => total (fun k => u i * x r i * (u k * x r k)) D) rows) D).
  { apply total_ext. intros i _. apply total_exchange. }
  transitivity (total (fun r => total (fun i => total (fun k => u i * x r i * (u k * x r k)) D) D)
    rows).
  { apply total_exchange. }
  apply total_ext. intros r _. unfold Rsqr, dot, below. fold D. now rewrite total_mult.
Qed.

Lemma gram_quadratic_bound d X Y rows u :
  0 <= X -> 0 <= Y -> legal_person d X Y rows -> norm d u = 1 ->
    0 <= quadratic d (gram rows) u <= X * X.
Proof.
  intros radius bound lawful unit.
  destruct (legal_person_bounds d X Y rows radius bound lawful) as [long _].
  rewrite quadratic_gram. split; [apply total_nonneg; intros; apply Rle_0_sqr |].
  apply Rle_trans with (lengths d rows); [| lra]. apply total_le. intros r _.
  eapply Rle_trans; [apply dot_cauchy |].
  assert (dot d u u = 1) as ->; [| lra].
  unfold norm in unit. rewrite <- (sqrt_sqrt _ (dot_nonneg d u)), unit. lra.
Qed.

Lemma eigenvalues_near d M M' l l' E :
  smallest_eigenvalue d M l -> smallest_eigenvalue d M' l' ->
  (forall u, norm d u = 1 -> Rabs (quadratic d M u - quadratic d M' u) <= E) -> Rabs (l - l') <= E.
Proof.
  intros [(u & unit & value) least] [(u' & unit' & value') least'] near.
  specialize (least u' unit') as above. specialize (least' u unit) as above'.
  pose proof (near u unit) as here. pose proof (near u' unit') as there.
  revert here there. unfold Rabs. repeat destruct Rcase_abs; lra.
Qed.

Lemma solved_near d X s s' E :
  solved d X s -> solved d X s' ->
  (forall u, norm d u = 1 -> Rabs (quadratic d (xtx s) u - quadratic d (xtx s') u) <= E) ->
  Rabs (eigenvalue s - eigenvalue s') <= E + X * X / 512.
Proof.
  intros (l & true_l & near) (l' & true_l' & near') moves.
  pose proof (eigenvalues_near d _ _ l l' E true_l true_l' moves) as distance.
  revert near near' distance. unfold Rabs. repeat destruct Rcase_abs; lra.
Qed.

(** All parts. *)
Definition three_parts (d : nat) (p : weights reals) (s s' : statistics) : R :=
  frobenius d (fun i k => xtx s i k - xtx s' i k)
    + Rsqr (w p) * below d (fun i => Rsqr (xty s i - xty s' i))
  + Rsqr (v p) * Rsqr (yty s - yty s').

Lemma parts_together d p s s' (main n E : R) :
  three_parts d p s s' <= main -> Rsqr (count s - count s') <= n ->
    (e p <> 0 -> Rabs (eigenvalue s - eigenvalue s') <= E) ->
  change_squared d p s s' <= main + Rsqr (c p) * n + Rsqr (e p * E).
Proof.
  intros three counted solvers. unfold change_squared.
  fold (frobenius d (fun i k => xtx s i k - xtx s' i k)).
  fold (three_parts d p s s'). apply Rplus_le_compat; [apply Rplus_le_compat; [exact three |] |].
  - apply Rmult_le_compat_l; [apply Rle_0_sqr | exact counted].
  - destruct (Req_dec (e p) 0) as [none | some]; [rewrite none; unfold Rsqr; lra |].
    specialize (solvers some). pose proof (Rabs_pos (eigenvalue s - eigenvalue s')).
    rewrite Rsqr_mult. apply Rmult_le_compat_l; [apply Rle_0_sqr |].
    apply Rsqr_le_abs_1. rewrite (Rabs_right E); lra.
Qed.

(** Tables of blocks, each of them one unit of the guarantee. *)
Section Units.
Variables (d : nat) (X Y : R) (p : weights reals) (D D' : list (list row)) (l l' : R).
Hypothesis radius : 0 < X.
Hypothesis bound : 0 < Y.
Hypothesis lawful : forall unit, In unit D \/ In unit D' -> legal_person d X Y unit.
Let s := of_persons D l.
Let s' := of_persons D' l'.
Hypothesis eigenvalues : e p <> 0 -> solved d X s /\ solved d X s'.

Lemma sums_of_units f : total f (concat D) - total f (concat D') = total (total f) D
  - total (total f) D'.
Proof. now rewrite !total_concat. Qed.

Lemma eigenvalue_bound :
  (forall u, norm d u = 1 -> Rabs (quadratic d (xtx s) u - quadratic d (xtx s') u) <= X * X) ->
  e p <> 0 -> Rabs (eigenvalue s - eigenvalue s') <= X * X * (1 * (1 + 1 / 512)).
Proof.
  intros moves published. destruct (eigenvalues published) as [here there].
  pose proof (solved_near d X s s' (X * X) here there moves). lra.
Qed.

Lemma units_replaced : replace_one D D' ->
  change_squared d p s s' <= sensitivity_squared reals ReplaceOne 1 X Y p.
Proof.
  intros near. destruct (replaced _ D D' near) as (a & a' & inside & inside' & moved & same).
  assert (legal_person d X Y a) as lawful_a by auto.
  assert (legal_person d X Y a') as lawful_a' by auto.
  assert (forall i k, xtx s i k - xtx s' i k = gram a i k - gram a' i k) as grams.
  { intros i k. cbn. rewrite sums_of_units. apply moved. }
  pose proof (blocks_apart d X Y (w p) (v p) a a' radius bound lawful_a lawful_a') as main.
  eapply Rle_trans.
  { apply parts_together.
    - eapply Rle_trans; [| exact main]. apply Req_le. unfold three_parts. f_equal; [f_equal |].
      + apply below_ext. intros i _. apply below_ext. intros k _. now rewrite grams.
      + f_equal. apply below_ext. intros i _. f_equal. cbn. rewrite sums_of_units. apply moved.
      + do 2 f_equal. cbn. rewrite sums_of_units. apply moved.
    - cbn. rewrite same, Rminus_diag_eq by reflexivity. rewrite Rsqr_0. apply Rle_refl.
    - apply eigenvalue_bound. intros u unit.
      rewrite quadratic_minus, (quadratic_ext d _ _ u grams), <- quadratic_minus.
      pose proof (gram_quadratic_bound d X Y a u ltac:(lra) ltac:(lra) lawful_a unit).
      pose proof (gram_quadratic_bound d X Y a' u ltac:(lra) ltac:(lra) lawful_a' unit).
      unfold Rabs. destruct Rcase_abs; lra. }
  unfold sensitivity_squared, rows_squared, lever, eigenvalue_slack. cbn [at_most whole reals].
  destruct (Rle_dec 1 1) as [_ | never]; [| exfalso; lra].
  unfold square. cbn [plus times over whole reals]. apply Req_le. unfold Rsqr. ring.
Qed.

Lemma units_removed : add_remove D D' ->
  change_squared d p s s' <= sensitivity_squared reals AddRemove 1 X Y p.
Proof.
  intros near. destruct (removed _ D D' near) as (a & sign & inside & one & moved & same).
  assert (legal_person d X Y a) as lawful_a by auto.
  assert (forall i k, xtx s i k - xtx s' i k = sign * gram a i k) as grams.
  { intros i k. cbn. rewrite sums_of_units. apply moved. }
  assert (forall z, Rsqr (sign * z) = Rsqr z) as flip by (intros z; rewrite Rsqr_mult, one; lra).
  pose proof (block_length d X Y (w p) (v p) a radius ltac:(lra) lawful_a) as main.
  eapply Rle_trans.
  { apply parts_together.
    - eapply Rle_trans; [| exact main]. apply Req_le. unfold three_parts. f_equal; [f_equal |].
      + apply below_ext. intros i _. apply below_ext. intros k _. now rewrite grams, flip.
      + f_equal. apply below_ext. intros i _. rewrite <- (flip (cross a i)). f_equal. cbn.
        rewrite sums_of_units. apply moved.
      + f_equal. rewrite <- (flip (responses a)). f_equal. cbn. rewrite sums_of_units. apply moved.
    - cbn. rewrite same, one. apply Rle_refl.
    - apply eigenvalue_bound. intros u unit. rewrite quadratic_minus, (quadratic_ext d _ _ u grams).
      pose proof (gram_quadratic_bound d X Y a u ltac:(lra) ltac:(lra) lawful_a unit) as range.
      replace (quadratic d (fun i k => sign * gram a i k) u) with (sign * quadratic d (gram a) u).
      + destruct range as [low high].
        rewrite <- (Rabs_right (X * X)) by nra. apply Rsqr_le_abs_0. rewrite flip.
        apply Rsqr_incr_1; nra.
      + unfold quadratic, below. rewrite <- total_scale. apply total_ext. intros i _.
        rewrite <- total_scale.
        apply total_ext. intros k _. ring. }
  unfold sensitivity_squared, rows_squared, lever, eigenvalue_slack. cbn [at_most whole reals].
  destruct (Rle_dec 1 1) as [_ | never]; [| exfalso; lra].
  unfold square. cbn [plus times over whole reals]. apply Req_le. unfold Rsqr. ring.
Qed.

Lemma units_bound rel : neighbours rel D D' ->
  change d p s s' <= sqrt (sensitivity_squared reals rel 1 X Y p).
Proof.
  intros near. apply sqrt_le_1_alt.
  destruct rel; [now apply units_replaced | now apply units_removed].
Qed.
End Units.

(** It is never zero. *)
Lemma sensitivity_positive rel X Y p : 0 < X -> 0 < sensitivity_squared reals rel 1 X Y p.
Proof.
  intros radius. unfold sensitivity_squared, rows_squared, lever. cbn [at_most whole reals].
  destruct (Rle_dec 1 1) as [_ | never]; [| exfalso; lra].
  generalize (over reals (times reals (w p) Y) X) (over reals (times reals (v p) (times reals Y Y))
    (times reals X X)).
  intros W V. change (number reals) with R in W, V.
  assert (1 <= longest reals W V) as long.
  { unfold longest. cbn. pose proof (Rle_0_sqr W). pose proof (Rle_0_sqr V). unfold Rsqr in *. lra.
      }
  assert (1 <= diameter reals W V) as wide.
  { assert (2
      <= one_zero reals W V). { unfold one_zero. cbn. pose proof (Rle_0_sqr W).
      pose proof (Rle_0_sqr V). unfold Rsqr in *. lra. }
    unfold diameter. cbn [at_most times whole reals].
    destruct Rle_dec; (eapply Rle_trans; [| apply larger_right]); lra. }
  unfold square. cbn [plus times over whole reals].
  assert (0 < X * X * (X * X)) by (repeat apply Rmult_lt_0_compat; lra).
  pose proof (Rle_0_sqr (c p)) as counted.
  pose proof (Rle_0_sqr (X * X * (e p * 1 * (1 + 1 / 512)))) as solved.
  unfold eigenvalue_slack. cbn [plus times over whole reals]. unfold Rsqr in *.
  destruct rel; nra.
Qed.
