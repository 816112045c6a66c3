(** Averaging: a changed row meets the sum of its group. *)

Require Import Reals Lra Psatz List Permutation Arith Lia.
From Tacit Require Import Sums Formulas Model Optimum Blocks Tables Contributions.
Import ListNotations.
Local Open Scope R_scope.

(** * Two vectors, by their inner products *)

Section Geometry.
Variable d : nat.
Implicit Types a b q p : vector.

Definition outer a b : R := frobenius d (fun i k => a i * a k - b i * b k).

Lemma outer_is a b : outer a b = Rsqr (dot d a a) + Rsqr (dot d b b) - 2 * Rsqr (dot d a b).
Proof.
  unfold outer. pose (ra := {| x := a; y := 0 |}). pose (rb := {| x := b; y := 0 |}).
  transitivity (overlap d [ra] [ra] + overlap d [rb] [rb] - 2 * overlap d [ra] [rb]).
  - rewrite <- !gram_product. unfold frobenius, below.
    rewrite <- total_scale, <- total_plus, <- total_minus.
    apply total_ext. intros i _. rewrite <- total_scale, <- total_plus, <- total_minus.
    apply total_ext. intros k _. unfold gram. cbn. unfold Rsqr. ring.
  - unfold overlap. cbn. ring.
Qed.

(** The scalar inequality behind the exchange of a row among K others. *)
Lemma exchange_scalars (K Q n s g h u : R) :
  1 <= K -> 0 <= Q <= K * K -> 0 <= n -> 0 <= s -> n + s * s + 2 * Rabs g <= 1 ->
    Rsqr g <= n * (s * s) ->
  Rabs h <= K * s -> Rsqr (h - g) <= s * s * (Q - 2 * u + n) ->
  (Q + 2 * u + n) * (s * s) + Rsqr (h + g) <= 2 * (K * K).
Proof.
  intros others long spread pos inside cauchy along across. set (G := Rabs g) in *.
  assert (0 <= G) as nonneg by apply Rabs_pos.
  assert (Rsqr g = G * G) as square_g by (unfold G; rewrite (Rsqr_abs g); reflexivity).
  assert (- (h * g) <= K * s * G) as product.
  { unfold G. rewrite <- Rabs_Ropp in along. pose proof (Rle_abs (- h * g))
      as sign. rewrite Rabs_mult in sign.
    pose proof (Rabs_pos g). pose proof (Rmult_le_compat_r (Rabs g) _ _ (Rabs_pos g) along). lra. }
  assert (h * g <= K * s * G) as product'.
  { unfold G. pose proof (Rle_abs (h * g)) as sign. rewrite Rabs_mult in sign.
    pose proof (Rmult_le_compat_r (Rabs g) _ _ (Rabs_pos g) along). lra. }
  assert ((Q + 2 * u + n) * (s * s) + Rsqr (h + g) <= 2 * (K * K) * (s * s) + 4 * (K * s * G)
    + 2 * n * (s * s)) as first.
  { assert (s * s * Q <= s * s * (K * K))
      by (apply Rmult_le_compat_l; nra). unfold Rsqr in *. lra. }
  assert (s <= 1) by nra.
  assert (G <= s * (1 - s)) as near.
  { destruct (Req_dec s 0) as [-> | some]; [assert (G * G <= 0) by nra; nra |]. assert (0 < s)
      by lra.
    assert (G * G <= (1 - s * s - 2 * G) * (s * s)).
    { rewrite <- square_g. eapply Rle_trans; [exact cauchy |]. apply Rmult_le_compat_r; nra. }
    assert (Rsqr (G + s * s) <= Rsqr s) as squares by (unfold Rsqr; lra).
    apply Rsqr_incr_0_var in squares; lra. }
  assert (2 * n * (s * s) <= 2 * (1 - s * s - 2 * G) * (s * s)) by (apply Rmult_le_compat_r; nra).
  assert (4 * G * (s * (K - s)) <= 4 * (s * (1 - s)) * (s * (K - s)))
    by (apply Rmult_le_compat_r; nra).
  assert (s * (K + 1 - s) <= K) as last by nra.
  assert (Rsqr (s * (K + 1 - s)) <= Rsqr K) by (apply Rsqr_incr_1; nra).
  unfold Rsqr in *. lra.
Qed.

(** Exchange of p for p' among others that sum to q, ‖q‖ ≤ K: the outer product moves by 4K. *)
Lemma exchange_outer K q p p' :
  1 <= K -> dot d q q <= K * K -> dot d p p <= 1 -> dot d p' p' <= 1 ->
  outer (fun i => q i + p i) (fun i => q i + p' i) <= Rsqr (4 * K).
Proof.
  intros others long short short'.
  pose (m := fun i => (p i + p' i) / 2). pose (t := fun i => (p i - p' i) / 2).
  pose proof (dot_nonneg d t) as tt. set (s := sqrt (dot d t t)).
  assert (s * s = dot d t t) as ss by now apply sqrt_sqrt.
  assert (dot d p p = dot d m m + 2 * dot d m t + dot d t t) as pp.
  { unfold m, t, dot, below. rewrite <- total_scale,
      <- !total_plus. apply total_ext. intros. field. }
  assert (dot d p' p' = dot d m m - 2 * dot d m t + dot d t t) as pp'.
  { unfold m, t, dot, below. rewrite <- total_scale, <- total_minus,
      <- total_plus. apply total_ext. intros. field. }
  assert (outer (fun i => q i + p i) (fun i => q i + p' i)
          = 8 * ((dot d q q + 2 * dot d q m + dot d m m) * dot d t t
            + Rsqr (dot d q t + dot d m t))) as ->.
  { rewrite outer_is.
    assert (dot d (fun i => q i + p i) (fun i => q i + p i)
            = dot d q q + 2 * dot d q m + dot d m m + 2 * (dot d q t + dot d m t) + dot d t t)
              as ->.
    { unfold m, t, dot, below. rewrite <- !total_plus, <- !total_scale,
        <- !total_plus. apply total_ext. intros. field. }
    assert (dot d (fun i => q i + p' i) (fun i => q i + p' i)
            = dot d q q + 2 * dot d q m + dot d m m - 2 * (dot d q t + dot d m t) + dot d t t)
              as ->.
    { unfold m, t, dot, below. rewrite <- !total_plus, <- !total_scale, <- !total_plus,
        <- total_minus, <- total_plus.
      apply total_ext. intros. field. }
    assert (dot d (fun i => q i + p i) (fun i => q i + p' i) = dot d q q + 2 * dot d q m + dot d m m
      - dot d t t) as ->.
    { unfold m, t, dot, below. rewrite <- !total_scale, <- !total_plus,
        <- total_minus. apply total_ext. intros. field. }
    unfold Rsqr. ring. }
  enough ((dot d q q + 2 * dot d q m + dot d m m) * (s * s) + Rsqr (dot d q t + dot d m t)
    <= 2 * (K * K)).
  { rewrite <- ss. unfold Rsqr in *. lra. }
  pose proof (sqrt_pos (dot d t t) : 0 <= s) as pos.
  apply exchange_scalars; [exact others | | apply dot_nonneg | exact pos | | | |].
  - split; [apply dot_nonneg | exact long].
  - rewrite ss. unfold Rabs. destruct Rcase_abs; lra.
  - rewrite ss. apply dot_cauchy.
  - assert (0 <= K * s) by nra. rewrite <- (Rabs_right (K * s)) by lra. apply Rsqr_le_abs_0.
    eapply Rle_trans; [apply dot_cauchy |]. unfold Rsqr. rewrite <- ss. nra.
  - rewrite ss. eapply Rle_trans; [| apply Req_le].
    + assert (dot d q t - dot d m t = dot d (fun i => q i - m i) t) as ->; [| apply dot_cauchy].
      unfold dot, below. rewrite <- total_minus. apply total_ext. intros. ring.
    + assert (dot d (fun i => q i - m i) (fun i => q i - m i) = dot d q q - 2 * dot d q m
        + dot d m m) as ->; [| ring].
      unfold dot, below. rewrite <- total_scale, <- total_minus, <- total_plus. apply total_ext.
      intros. ring.
Qed.

(** A row alone: the bound of two rows, which is smaller. *)
Lemma exchange_alone p p' : dot d p p <= 1 -> dot d p' p' <= 1 -> outer p p' <= Rsqr 2.
Proof.
  intros short short'. rewrite outer_is. pose proof (dot_nonneg d p). pose proof (dot_nonneg d p').
  pose proof (Rle_0_sqr (dot d p p')). unfold Rsqr in *. nra.
Qed.

(** Loss of p: by at most 2K + 1. *)
Lemma loss_outer K q p :
  0 <= K -> dot d q q <= K * K -> dot d p p <= 1 ->
    outer (fun i => q i + p i) q <= Rsqr (2 * K + 1).
Proof.
  intros nonneg long short. rewrite outer_is.
  assert (dot d (fun i => q i + p i) (fun i => q i + p i) = dot d q q + 2 * dot d q p + dot d p p)
    as ->.
  { unfold dot, below. rewrite <- total_scale, <- !total_plus. apply total_ext. intros. ring. }
  assert (dot d (fun i => q i + p i) q = dot d q q + dot d q p) as ->.
  { rewrite dot_add, (dot_sym d p q). reflexivity. }
  pose proof (dot_nonneg d q) as Q. pose proof (dot_nonneg d p) as P.
  pose proof (dot_cauchy d q p) as cauchy.
  set (a := dot d q q) in *. set (b := dot d p p) in *. set (c := dot d q p) in *. clearbody a b c.
  assert (c <= K) as angle.
  { assert (Rsqr c <= Rsqr K) as squares by (unfold Rsqr; nra). apply Rsqr_incr_0_var in squares;
      lra. }
  assert (c * c <= K * K) by nra. assert (a * b <= K * K) by nra. assert (b * b <= 1) by nra.
  assert (c * b <= K) by nra.
  unfold Rsqr. nra.
Qed.
End Geometry.

(** * Responses *)

Lemma exchange_responses K Y u v v' :
  1 <= K -> Rabs u <= K * Y -> Rabs v <= Y -> Rabs v' <= Y ->
  Rabs (u + v) + Rabs (u + v') + K * Rabs (v - v') <= 4 * K * Y
  /\ Rabs (Rsqr (u + v) - Rsqr (u + v')) <= 4 * K * (Y * Y).
Proof.
  intros others far near near'. set (D := Rabs (v - v')).
  assert (0 <= D /\ D + Rabs (v + v') <= 2 * Y) as [pos both].
  { split; [apply Rabs_pos |]. unfold D. revert near near'. unfold Rabs. repeat destruct Rcase_abs;
      lra. }
  pose proof (Rabs_pos (v + v')) as pos'.
  assert (0 <= (K - 1) * (2 * Y - D)) as rest by (apply Rmult_le_pos; lra).
  split.
  - enough (Rabs (u + v) + Rabs (u + v') <= 2 * K * Y + (2 * Y - D) \/ Rabs (u + v) + Rabs (u + v')
      <= D) as [same | opposite].
    + lra.
    + assert (K * D <= K * (2 * Y)) by (apply Rmult_le_compat_l; lra). nra.
    + revert far both. unfold D, Rabs. repeat destruct Rcase_abs; intros; lra.
  - replace (Rsqr (u + v) - Rsqr (u + v')) with ((v - v') * (2 * u + (v + v')))
      by (unfold Rsqr; ring).
    rewrite Rabs_mult. fold D.
    assert (Rabs (2 * u + (v + v')) <= 2 * K * Y + (2 * Y - D)).
    { eapply Rle_trans; [apply Rabs_triang |]. rewrite Rabs_mult, (Rabs_right 2) by lra. lra. }
    assert (D * Rabs (2 * u + (v + v')) <= D * (2 * K * Y + (2 * Y - D)))
      by (apply Rmult_le_compat_l; lra).
    assert (0 <= (2 * Y - D) * (2 * (K * Y) - D)) by (apply Rmult_le_pos; nra). lra.
Qed.

(** * A row within its group, with bounds X and Y *)

Section Rows.
Variables (d : nat) (X Y : R).
Hypothesis radius : 0 < X.
Hypothesis bound : 0 < Y.

(** All three parts moved by no more than L times what a longest row has. *)
Definition within (L : R) (a b : row) : Prop :=
  outer d (x a) (x b) <= Rsqr (L * (X * X))
  /\ norm d (fun i => y a * x a i - y b * x b i) <= L * (X * Y)
  /\ Rabs (Rsqr (y a) - Rsqr (y b)) <= L * (Y * Y).

Definition plus_row (q r : row) : row := {| x := fun i => x q i + x r i; y := y q + y r |}.
Definition others_legal (K : R) (q : row) : Prop := norm d (x q) <= K * X /\ Rabs (y q) <= K * Y.

Lemma outer_scaled a b f :
  outer d (fun i => f * a i) (fun i => f * b i) = Rsqr (f * f) * outer d a b.
Proof.
  rewrite !outer_is, !dot_scale, !(dot_sym d _ (fun i => f * _ i)), !dot_scale, (dot_sym d b a).
  unfold Rsqr. ring.
Qed.

Lemma unit_length a B : 0 <= B -> norm d a <= B * X ->
  dot d (fun i => / X * a i) (fun i => / X * a i) <= B * B.
Proof.
  intros nonneg short. rewrite dot_scale, dot_sym, dot_scale.
  apply norm_le in short; [| nra]. apply Rle_trans with (/ X * (/ X * (B * X * (B * X)))).
  - assert (0 < / X) by now apply Rinv_0_lt_compat. repeat apply Rmult_le_compat_l; lra.
  - apply Req_le. field. lra.
Qed.

Lemma norm_three p p' q a b g B :
  norm d p <= X -> norm d p' <= X -> norm d q <= B * X -> 0 <= B ->
  norm d (fun i => a * p i - b * p' i + g * q i) <= X * (Rabs a + Rabs b + B * Rabs g).
Proof.
  intros short short' long nonneg.
  pose proof (triangle (seq 0 d) (fun i => a * p i - b * p' i) (fun i => - g * q i)) as outside.
  pose proof (triangle (seq 0 d) (fun i => a * p i) (fun i => b * p' i)) as inside.
  unfold apart in outside, inside.
  rewrite (size_ext (seq 0 d) _ (fun i => a * p i - b * p' i + g * q i)) in outside
    by (intros; ring).
  rewrite !size_is_norm, norm_scale, Rabs_Ropp in outside.
  rewrite !size_is_norm, !norm_scale in inside.
  assert (Rabs a * norm d p <= Rabs a * X) by (apply Rmult_le_compat_l; [apply Rabs_pos | lra]).
  assert (Rabs b * norm d p' <= Rabs b * X) by (apply Rmult_le_compat_l; [apply Rabs_pos | lra]).
  assert (Rabs g * norm d q <= Rabs g * (B * X))
    by (apply Rmult_le_compat_l; [apply Rabs_pos | lra]).
  lra.
Qed.

Lemma rescale a b L : outer d (fun i => / X * a i) (fun i => / X * b i) <= Rsqr L ->
  outer d a b <= Rsqr (L * (X * X)).
Proof.
  intros unit. rewrite outer_scaled in unit. assert (0 < Rsqr (X * X)) by (apply Rsqr_pos_lt; nra).
  replace (Rsqr (/ X * / X)) with (/ Rsqr (X * X)) in unit by (unfold Rsqr; field; lra).
  rewrite Rsqr_mult. apply Rmult_le_reg_l with (/ Rsqr (X * X)); [now apply Rinv_0_lt_compat |].
  eapply Rle_trans; [exact unit |]. apply Req_le. field. lra.
Qed.

Lemma exchange_among K q r r' :
  1 <= K -> others_legal K q -> legal d X Y r -> legal d X Y r' ->
    within (4 * K) (plus_row q r) (plus_row q r').
Proof.
  intros others [long far] [short near] [short' near'].
  destruct (exchange_responses K Y (y q) (y r) (y r') others far near near') as [sums squares].
  split; [| split].
  - apply rescale. cbn.
    pose proof (exchange_outer d K (fun i => / X * x q i) (fun i => / X * x r i)
      (fun i => / X * x r' i) others) as unit.
    assert (forall a b : vector, (forall i, / X * (a i + b i) = / X * a i + / X * b i))
      as distribute by (intros; ring).
    replace (outer d (fun i => / X * (x q i + x r i)) (fun i => / X * (x q i + x r' i)))
      with (outer d (fun i => / X * x q i + / X * x r i) (fun i => / X * x q i + / X * x r' i)).
    + apply unit; [apply unit_length; lra | |];
        (rewrite <- (Rmult_1_r 1); apply unit_length; [lra | now rewrite Rmult_1_l]).
    + apply below_ext. intros i _. apply below_ext. intros k _. unfold Rsqr. ring.
  - cbn. eapply Rle_trans.
    + apply Req_le. etransitivity; [| reflexivity]. apply (size_ext (seq 0 d)). intros i.
      instantiate (1 :=
        fun i => (y q + y r) * x r i - (y q + y r') * x r' i + (y r - y r') * x q i). cbn. ring.
    + rewrite size_is_norm.
      eapply Rle_trans;
        [apply (norm_three _ _ _ _ _ _ K); [exact short | exact short' | exact long | lra] |].
      replace (4 * K * (X * Y)) with (X * (4 * K * Y)) by ring. apply Rmult_le_compat_l; lra.
  - exact squares.
Qed.

Lemma exchange_by_itself r r' : legal d X Y r -> legal d X Y r' -> within 2 r r'.
Proof.
  intros [short near] [short' near']. split; [| split].
  - apply rescale.
    apply exchange_alone;
      (rewrite <- (Rmult_1_r 1); apply unit_length; [lra | now rewrite Rmult_1_l]).
  - pose proof (triangle (seq 0 d) (fun i => y r * x r i) (fun i => y r' * x r' i)) as both.
    unfold apart in both.
    rewrite !size_is_norm in both. eapply Rle_trans; [exact both |]. rewrite !norm_scale.
    pose proof (sqrt_pos (dot d (x r) (x r)) : 0 <= norm d (x r)).
    pose proof (sqrt_pos (dot d (x r') (x r')) : 0 <= norm d (x r')).
    pose proof (Rabs_pos (y r)). pose proof (Rabs_pos (y r')).
    assert (Rabs (y r) * norm d (x r) <= Y * X) by (apply Rmult_le_compat; lra).
    assert (Rabs (y r') * norm d (x r') <= Y * X) by (apply Rmult_le_compat; lra). lra.
  - assert (forall u, Rabs u <= Y -> 0 <= Rsqr u <= Y * Y) as square.
    { intros u small. split;
        [apply Rle_0_sqr |]. rewrite (Rsqr_abs u). pose proof (Rabs_pos u). unfold Rsqr. nra. }
    pose proof (square (y r) near). pose proof (square (y r') near'). unfold Rabs.
    destruct Rcase_abs; lra.
Qed.

Lemma loss_among K q r : 0 <= K -> others_legal K q -> legal d X Y r ->
  within (2 * K + 1) (plus_row q r) q.
Proof.
  intros nonneg [long far] [short near]. split; [| split].
  - apply rescale. cbn.
    pose proof (loss_outer d K (fun i => / X * x q i) (fun i => / X * x r i) nonneg) as unit.
    replace (outer d (fun i => / X * (x q i + x r i)) (fun i => / X * x q i))
      with (outer d (fun i => / X * x q i + / X * x r i) (fun i => / X * x q i)).
    + apply unit; [apply unit_length; lra |]. rewrite <- (Rmult_1_r 1).
      apply unit_length; [lra | now rewrite Rmult_1_l].
    + apply below_ext. intros i _. apply below_ext. intros k _. unfold Rsqr. ring.
  - cbn. eapply Rle_trans.
    + apply Req_le. apply (size_ext (seq 0 d)). intros i.
      instantiate (1 := fun i => (y q + y r) * x r i - 0 * x r i + y r * x q i). cbn. ring.
    + rewrite size_is_norm.
      eapply Rle_trans;
        [apply (norm_three _ _ _ _ _ _ K); [exact short | exact short | exact long | lra] |].
      rewrite Rabs_R0. replace ((2 * K + 1) * (X * Y)) with (X * ((K * Y + Y) + 0 + K * Y)) by ring.
      apply Rmult_le_compat_l; [lra |]. pose proof (Rabs_triang (y q) (y r)).
      assert (K * Rabs (y r) <= K * Y) by (apply Rmult_le_compat_l; lra). lra.
  - cbn. replace (Rsqr (y q + y r) - Rsqr (y q)) with (y r * (2 * y q + y r))
      by (unfold Rsqr; ring).
    rewrite Rabs_mult. pose proof (Rabs_pos (y r)). pose proof (Rabs_pos (2 * y q + y r)).
    assert (Rabs (2 * y q + y r) <= 2 * (K * Y) + Y).
    { eapply Rle_trans; [apply Rabs_triang |]. rewrite Rabs_mult, (Rabs_right 2) by lra. lra. }
    apply Rle_trans with (Y * (2 * (K * Y) + Y)); [apply Rmult_le_compat; lra | lra].
Qed.

Lemma within_more L L' a b : 0 <= L <= L' -> within L a b -> within L' a b.
Proof.
  intros order (first & second & third).
  assert (0 < X * X /\ 0 < X * Y /\ 0 < Y * Y) as (? & ? & ?) by nra.
  split; [| split].
  - eapply Rle_trans; [exact first |].
    apply Rsqr_incr_1; [apply Rmult_le_compat_r | apply Rmult_le_pos | apply Rmult_le_pos]; lra.
  - eapply Rle_trans; [exact second |]. apply Rmult_le_compat_r; lra.
  - eapply Rle_trans; [exact third |]. apply Rmult_le_compat_r; lra.
Qed.

(** The sum of m legal rows. *)
Lemma joined_legal rows : (forall r, In r rows -> legal d X Y r) ->
  others_legal (INR (length rows)) (joined rows).
Proof.
  intros lawful. induction rows as [| r rows IH].
  - split; cbn; [| rewrite Rabs_R0; lra]. unfold norm, dot.
    rewrite (below_ext d _ (fun _ => 0)) by (intros; cbn; ring).
    unfold below. rewrite total_zero, sqrt_0. lra.
  - destruct (lawful r (in_eq _ _)) as [short near]. destruct IH as [long far];
      [auto using in_cons |].
    cbn [length]. rewrite S_INR. split.
    + pose proof (triangle (seq 0 d) (x r) (fun i => -1 * x (joined rows) i)) as both.
      unfold apart in both.
      rewrite (size_ext (seq 0 d) _ (x (joined (r :: rows)))) in both
        by (intros i; unfold joined; cbn [x y]; rewrite total_cons; ring).
      rewrite !size_is_norm, norm_scale in both. rewrite (Rabs_left (-1)) in both by lra. lra.
    + unfold joined in *. cbn [x y] in *. rewrite total_cons.
      eapply Rle_trans; [apply Rabs_triang |]. lra.
Qed.

(** A row at any place of its group. *)
Lemma place_in_group before r after :
  forall i, x (joined (before ++ r :: after)) i = x (plus_row (joined (before ++ after)) r) i.
Proof. intros i. unfold joined, plus_row. cbn [x y]. rewrite !total_app, total_cons. ring. Qed.

Lemma response_in_group before r after :
  y (joined (before ++ r :: after)) = y (plus_row (joined (before ++ after)) r).
Proof. unfold joined, plus_row. cbn [x y]. rewrite !total_app, total_cons. ring. Qed.

Lemma within_ext L a a' b b' :
  (forall i, x a i = x a' i) -> (forall i, x b i = x b' i) -> y a = y a' -> y b = y b' ->
    within L a b -> within L a' b'.
Proof.
  intros xa xb ya yb (first & second & third). split; [| split].
  - eapply Rle_trans; [| exact first]. apply Req_le. apply below_ext. intros. apply below_ext.
    intros. now rewrite !xa, !xb.
  - eapply Rle_trans; [| exact second]. apply Req_le. apply (size_ext (seq 0 d)). intros.
    now rewrite xa, xb, ya, yb.
  - now rewrite <- ya, <- yb.
Qed.

Lemma group_exchange k before r r' after :
  (2 <= k)%nat -> (length (before ++ r :: after) <= k)%nat ->
  (forall s, In s (before ++ after) -> legal d X Y s) -> legal d X Y r -> legal d X Y r' ->
  within (4 * (INR k - 1)) (joined (before ++ r :: after)) (joined (before ++ r' :: after)).
Proof.
  intros several fits lawful one other. pose proof (joined_legal _ lawful) as rest.
  assert (1 <= INR k - 1) as many. { apply le_INR in several. cbn in several. lra. }
  apply (within_ext _ (plus_row (joined (before ++ after)) r) _
    (plus_row (joined (before ++ after)) r'));
    [intros; symmetry; apply place_in_group | intros; symmetry; apply place_in_group
     | symmetry; apply response_in_group | symmetry; apply response_in_group |].
  destruct (before ++ after) as [| s others] eqn:empty.
  - apply (within_more 2); [lra |].
    apply (within_ext _ r _ r'); [intros; cbn; ring | intros; cbn; ring | cbn; ring | cbn; ring |].
    now apply exchange_by_itself.
  - rewrite <- empty in *. set (K := length (before ++ after)) in *.
    assert (S K <= k)%nat as room. { unfold K. rewrite app_length in *. cbn in fits. lia. }
    assert (1 <= INR K).
    { replace 1 with (INR 1) by reflexivity. apply le_INR. unfold K. rewrite empty. cbn. lia. }
    apply le_INR in room. rewrite S_INR in room.
    apply (within_more (4 * INR K)); [lra |]. now apply exchange_among.
Qed.

Lemma group_loss k before r :
  (1 <= k)%nat -> (length (before ++ [r]) <= k)%nat -> (forall s, In s before -> legal d X Y s) ->
    legal d X Y r ->
  within (2 * (INR k - 1) + 1) (joined (before ++ [r])) (joined before).
Proof.
  intros some fits lawful one. pose proof (joined_legal _ lawful) as rest.
  apply (within_ext _ (plus_row (joined before) r) _ (joined before)); try reflexivity.
  - intros i. rewrite place_in_group. cbn. now rewrite app_nil_r.
  - rewrite response_in_group. cbn. now rewrite app_nil_r.
  - rewrite app_length in fits. cbn in fits. apply le_INR in fits. rewrite plus_INR in fits.
    cbn in fits.
    pose proof (pos_INR (length before)). apply (within_more (2 * INR (length before) + 1));
      [lra |]. now apply loss_among.
Qed.
End Rows.
