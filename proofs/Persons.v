(** Rows and persons as blocks; the mean of a person's rows. *)

Require Import Reals Lra Psatz List Permutation.
From Tacit Require Import Sums Formulas Model Optimum Blocks Tables.
Import ListNotations.
Local Open Scope R_scope.

Lemma neighbours_map (A B : Type) (f : A -> B) rel (D D' : list A) : neighbours rel D D' ->
  neighbours rel (map f D) (map f D').
Proof.
  destruct rel; cbn.
  - intros (a & a' & rest & one & other). exists (f a), (f a'), (map f rest).
    split; [apply (Permutation_map f one) | apply (Permutation_map f other)].
  - intros [a [more | less]]; exists (f a);
      [left; apply (Permutation_map f more) | right; apply (Permutation_map f less)].
Qed.

(** A row is a block of one. *)
Lemma legal_alone d X Y r : legal d X Y r -> legal_person d X Y [r].
Proof.
  intros [short near]. unfold legal_person. cbn [total fold_right]. rewrite !Rplus_0_r.
  split; [exact short |].
  change (y r * y r) with (Rsqr (y r)). now rewrite sqrt_Rsqr_abs.
Qed.

Lemma rows_as_persons D l : of_rows D l = of_persons (map (fun r => [r]) D) l.
Proof.
  unfold of_rows, of_persons. rewrite map_length. f_equal. induction D as [| r D IH];
    [reflexivity |]. cbn. now rewrite <- IH.
Qed.

Lemma legal_bounds d X Y r : 0 <= X -> 0 <= Y -> legal d X Y r -> dot d (x r) (x r) <= X * X /\
  y r * y r <= Y * Y.
Proof.
  intros radius bound [short near]. split; [now apply norm_le in short |].
  pose proof (Rabs_pos (y r)). change (y r * y r) with (Rsqr (y r)). rewrite Rsqr_abs. unfold Rsqr.
  nra.
Qed.

(** Legal rows, each divided by √m, make a legal person. *)
Lemma mean_legal d X Y rows : 0 <= X -> 0 <= Y -> (forall r, In r rows -> legal d X Y r) ->
  legal_person d X Y (mean_person rows).
Proof.
  intros radius bound lawful. unfold legal_person, mean_person. rewrite !total_map.
  set (n := INR (length rows)). set (f := / sqrt n).
  assert (f * f * (n * (X * X)) <= X * X /\ f * f * (n * (Y * Y)) <= Y * Y) as [half half'].
  { destruct rows as [| r rows].
    - unfold f, n. cbn. rewrite sqrt_0. split; nra.
    - assert (0 < n) as some by (unfold n; apply lt_0_INR; cbn; apply Nat.lt_0_succ).
      assert (f * f = / n) as ->.
      { unfold f. rewrite <- Rinv_mult
          by (apply Rgt_not_eq; now apply sqrt_lt_R0). now rewrite sqrt_sqrt by lra. }
      split; apply Req_le; field; lra. }
  assert (0 <= f * f) by apply Rle_0_sqr.
  split.
  - rewrite <- (sqrt_square X radius). apply sqrt_le_1_alt. eapply Rle_trans; [| exact half].
    apply Rle_trans with (total (fun _ => f * f * (X * X)) rows).
    + apply total_le. intros r member. cbn. rewrite dot_scale, dot_sym, dot_scale, <- Rmult_assoc.
      apply Rmult_le_compat_l; [lra |]. apply (legal_bounds d X Y r radius bound (lawful r member)).
    + rewrite total_const. fold n. lra.
  - rewrite <- (sqrt_square Y bound). apply sqrt_le_1_alt. eapply Rle_trans; [| exact half'].
    apply Rle_trans with (total (fun _ => f * f * (Y * Y)) rows).
    + apply total_le. intros r member. cbn.
      replace (f * y r * (f * y r)) with (f * f * (y r * y r)) by ring.
      apply Rmult_le_compat_l; [lra |]. apply (legal_bounds d X Y r radius bound (lawful r member)).
    + rewrite total_const. fold n. lra.
Qed.

Lemma mean_is_mean rows i k :
  rows <> [] ->
  let m := INR (length rows) in
  gram (mean_person rows) i k = / m * gram rows i k
  /\ cross (mean_person rows) i = / m * cross rows i
  /\ responses (mean_person rows) = / m * responses rows.
Proof.
  intros some m. assert (0 < m) as positive.
  { unfold m. destruct rows; [easy |]. apply lt_0_INR. cbn. apply Nat.lt_0_succ. }
  assert (/ sqrt m * / sqrt m = / m) as half.
  { rewrite <- Rinv_mult by (apply Rgt_not_eq; now apply sqrt_lt_R0). now rewrite sqrt_sqrt
      by lra. }
  unfold gram, cross, responses, mean_person. rewrite !total_map. fold m.
  rewrite <- half, <- !total_scale.
  repeat split; apply total_ext; intros r _; cbn; ring.
Qed.
